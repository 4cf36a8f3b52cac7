/**
 * How the scripts run programs, report failures and end.
 *
 * @module
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** A failure that is explained by its message alone, without a stack. */
export class ScriptError extends Error {}

// npm and the programs in node_modules/.bin are batch files on Windows, which only a shell starts.
const shell = process.platform === 'win32';

/**
 * Runs a command in the terminal of this one.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {number} exit code, 128 + n when signal n ended it
 */
export function run(file, args, options) {
  const child = spawnSync(file, args, { cwd: root, stdio: 'inherit', shell, ...options });
  if (child.error) throw child.error;
  return child.status ?? 128 + constants.signals[child.signal];
}

/**
 * Runs a command and shows what it printed only when it fails.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {string} its standard output
 */
export function capture(file, args, options) {
  const child = spawnSync(file, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    shell,
    ...options,
  });
  if (child.error) throw child.error;
  if (child.status === 0) return child.stdout;
  process.stderr.write(`${child.stdout}${child.stderr}`);
  throw new ScriptError(`failed: ${file} ${args.join(' ')}`);
}

/**
 * Runs a command in the terminal of this one and also collects what it prints.
 *
 * @param {string} file
 * @param {string[]} args
 * @param {import('node:child_process').SpawnOptions} [options]
 * @returns {Promise<{ code: number, output: string }>}
 */
export function tee(file, args, options) {
  const stdio = ['inherit', 'pipe', 'pipe'];
  const child = spawn(file, args, { cwd: root, shell, ...options, stdio });
  let output = '';
  for (const name of ['stdout', 'stderr']) {
    child[name].setEncoding('utf8').on('data', (text) => {
      output += text;
      process[name].write(text);
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      resolve({ code: code ?? 128 + constants.signals[signal], output });
    });
  });
}

/**
 * Runs the main function of a script; what it returns is the exit code.
 *
 * @param {() => number | void | Promise<number | void>} main
 */
export async function script(main) {
  try {
    process.exitCode = (await main()) ?? 0;
  } catch (error) {
    if (!(error instanceof ScriptError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}

/**
 * @param {string} url `import.meta.url` of the asking module
 * @returns {boolean} whether that module was started, not imported
 */
export function isMain(url) {
  const started = process.argv[1];
  // The path on the command line may lead through a symbolic link, the module's does not.
  return (
    started !== undefined && existsSync(started) && realpathSync(started) === fileURLToPath(url)
  );
}

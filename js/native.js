/**
 * Loads the addon: the file beside the package, else the package of this platform. The program
 * `oak-helper` lies beside the addon.
 *
 * @module
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const require = createRequire(import.meta.url);
const PACKAGE = '@cloudbase/open-agent-kernel';

/** Names of this platform's builds, in the spelling of napi-rs; on Linux one for each libc. */
function targets() {
  const base = `${process.platform}-${process.arch}`;
  if (process.platform === 'linux') return [`${base}-gnu`, `${base}-musl`];
  return [process.platform === 'win32' ? `${base}-msvc` : base];
}

/** The addon, and where the helper of the same build is. */
function load() {
  const failures = [];
  for (const target of targets()) {
    const file = fileURLToPath(new URL(`../open-agent-kernel.${target}.node`, import.meta.url));
    if (existsSync(file)) {
      const addon = attempt(file, failures);
      if (addon) return { addon, helper: helperBeside(file, target) };
    }
    const name = `${PACKAGE}-${target}`;
    const addon = attempt(name, failures);
    if (addon) return { addon, helper: helperBeside(require.resolve(name), target) };
  }
  throw unloadable(failures);
}

function helperBeside(file, target) {
  return join(dirname(file), `oak-helper.${target}`);
}

function attempt(path, failures) {
  try {
    return require(path);
  } catch (error) {
    failures.push({ path, error });
    return undefined;
  }
}

/** Tells what was tried and what the system linker really said. */
function unloadable(failures) {
  const glibc = process.report?.getReport?.().header?.glibcVersionRuntime;
  const libc = process.platform === 'linux' ? `, ${glibc ? `glibc ${glibc}` : 'musl'}` : '';
  const tried = failures.map(
    ({ path, error }) => `  ${path}: ${String(error?.message).split('\n')[0]}`,
  );
  const error = new Error(
    `${PACKAGE} has no addon that loads on ${process.platform} ${process.arch}${libc}.\n` +
      `${tried.join('\n')}\n` +
      'In a checkout, `npm run build` makes one (it needs Rust).',
    { cause: failures.find(({ path }) => path.endsWith('.node'))?.error },
  );
  error.code = 'E_ADDON_LOAD';
  return error;
}

const { addon, helper } = load();

export const native = addon;

/** Where the program that starts children is expected; whether it is there shows when it is needed. */
export const helperPath = helper;

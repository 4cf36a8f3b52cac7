/**
 * Loads the addon: the file beside the package, else the package of this platform.
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

function load() {
  const failures = [];
  for (const target of targets()) {
    const file = fileURLToPath(new URL(`../open-agent-kernel.${target}.node`, import.meta.url));
    if (existsSync(file)) {
      const addon = attempt(file, failures);
      if (addon) return { addon, file };
    }
    const name = `${PACKAGE}-${target}`;
    const addon = attempt(name, failures);
    if (addon) return { addon, file: require.resolve(name) };
  }
  throw unloadable(failures);
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

const { addon, file } = load();

export const native = addon;

/** The program that starts child processes; it stands beside the addon. */
export const helperPath = join(dirname(file), 'oak-helper');

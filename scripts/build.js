/**
 * Builds the addon, `oak-helper` and the entry: `node scripts/build.js [--release]`.
 *
 * The entry is one file made of `index.js` and `js/`: loading thirty modules takes longer than loading
 * the addon.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';

import { cargoEnv, devFeatures, requireCargo, targetDir } from './cargo.js';
import { ScriptError, isMain, root, script } from './run.js';

const LIBRARY = {
  darwin: 'libopen_agent_kernel.dylib',
  win32: 'open_agent_kernel.dll',
};

const HELPER = 'oak-helper';
/** The helper runs on every Linux of its architecture, whatever C library that has. */
const STATIC = process.platform === 'linux' ? ['-C', 'target-feature=+crt-static'] : [];

/**
 * Compiles what is stale (cargo decides) and puts the addon, the helper and the entry into the checkout.
 *
 * @param {{ release?: boolean }} [options]
 * @returns {Promise<string>} path of the addon
 */
export async function build({ release = false } = {}) {
  requireCargo();
  const built = join(targetDir, release ? 'release' : 'debug');
  const flags = release ? ['--release'] : devFeatures;
  await cargo(['build', '--lib', ...flags], 'the addon did not compile');
  const library = LIBRARY[process.platform] ?? 'libopen_agent_kernel.so';
  const addon = join(root, addonName());
  install(readFileSync(join(built, library)), addon);
  // Children are not built for Windows yet.
  if (process.platform !== 'win32') await buildHelper(built, flags);
  install(await bundle(), join(root, 'dist', 'index.js'));
  return addon;
}

async function buildHelper(built, flags) {
  // Cargo keeps it apart from the dynamic one of `cargo build`: neither makes the other stale.
  await cargo(
    ['rustc', '--bin', HELPER, ...flags, '--', ...STATIC],
    `${HELPER} did not compile (on Linux it needs a static C library: libc6-dev, glibc-static)`,
  );
  const helper = join(root, `${HELPER}.${target()}`);
  install(readFileSync(join(built, HELPER)), helper);
  chmodSync(helper, 0o755);
}

async function bundle() {
  const { build: esbuild } = await import('esbuild');
  const { outputFiles } = await esbuild({
    absWorkingDir: root,
    entryPoints: ['index.js'],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    packages: 'external',
    write: false,
  });
  return Buffer.from(outputFiles[0].contents);
}

/** @returns {string} file name of the addon on this platform, in the spelling of napi-rs */
export function addonName() {
  return `open-agent-kernel.${target()}.node`;
}

function target() {
  return `${process.platform}-${process.arch}${abi()}`;
}

function abi() {
  if (process.platform === 'win32') return '-msvc';
  if (process.platform !== 'linux') return '';
  return process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl';
}

/** Runs cargo without the line that tells of nothing. */
function cargo(args, failure) {
  const stdio = ['ignore', 'inherit', 'pipe'];
  const child = spawn('cargo', args, { cwd: root, env: cargoEnv, stdio });
  createInterface({ input: child.stderr }).on('line', (line) => {
    // All that cargo says when there is nothing to do.
    if (!/^\s*Finished /.test(line)) process.stderr.write(`${line}\n`);
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new ScriptError(failure));
    });
  });
}

function install(content, to) {
  if (existsSync(to) && readFileSync(to).equals(content)) return;
  // A rename leaves the old file to the processes that have it loaded.
  const draft = `${to}.${process.pid}.tmp`;
  mkdirSync(dirname(to), { recursive: true });
  try {
    writeFileSync(draft, content);
    renameSync(draft, to);
  } finally {
    rmSync(draft, { force: true });
  }
}

if (isMain(import.meta.url)) {
  await script(async () => {
    await build({ release: process.argv.includes('--release') });
  });
}

/**
 * Running the examples as their users do.
 *
 * @module
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TIME_MS = 120_000;

/** With this file the examples talk to CloudBase. */
export const USES_CLOUDBASE = existsSync(
  new URL('../../examples/config.local.json', import.meta.url),
);

/**
 * Runs an example to its end, against its own emulator; rejects when it fails.
 *
 * @param {string} name
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ stdout: string, stderr: string }>}
 */
export function runExample(name, env = {}) {
  const args = [...loaderFlags(), `examples/${name}`];
  const options = {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    timeout: TIME_MS,
  };
  return promisify(execFile)(process.execPath, args, options);
}

/** Node.js 22 reads TypeScript by itself. */
function loaderFlags() {
  return Number(process.versions.node.split('.')[0]) < 22 ? ['--import', 'tsx'] : [];
}

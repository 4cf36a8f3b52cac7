import { spawn } from 'node:child_process';
import { constants } from 'node:os';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs a command against an emulator.
 *
 * @param {string[]} command
 * @param {{ url: string, apiKey: string | null }} emulator
 * @returns {Promise<number>} exit code, shell style: 127 when the command cannot be started and
 *   128 + n when signal n ended it
 */
export function runCommand([file, ...args], { url, apiKey }) {
  const env = { ...process.env, OAK_EMULATOR_HUB: url, TCB_API_KEY: apiKey ?? 'emulator-key' };
  const child = spawn(file, args, { stdio: 'inherit', env });
  const forward = (signal) => {
    // Ctrl-C in a terminal reaches the whole process group, the command included.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  return new Promise((resolve) => {
    child.once('error', (error) => {
      process.stderr.write(`oak-emulator: cannot run ${file}: ${error.message}\n`);
      resolve(127);
    });
    child.once('exit', (code, signal) => {
      resolve(code ?? 128 + constants.signals[signal]);
    });
  }).finally(() => {
    for (const signal of FORWARDED) process.off(signal, forward);
  });
}

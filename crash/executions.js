/**
 * Executions of tools, recorded outside the store: one line each, on the disk before the tool returns.
 *
 * @module
 */
import { appendFileSync, closeSync, existsSync, fsyncSync, openSync, readFileSync } from 'node:fs';

/**
 * @param {string} file
 * @param {{ call: string, tool: string }} execution
 */
export function recordExecution(file, execution) {
  // O_APPEND: executions that run together, in two processes as well, do not overwrite each other.
  const handle = openSync(file, 'a');
  try {
    appendFileSync(handle, `${JSON.stringify({ ...execution, pid: process.pid })}\n`);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/**
 * @param {string} file
 * @returns {{ call: string, tool: string, pid: number }[]} in order
 */
export function readExecutions(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line));
}

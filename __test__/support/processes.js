/**
 * Starting programs, and looking at processes: which ones carry a mark, and whether some still run.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { eventually } from './boundary.js';

const SERVER = fileURLToPath(new URL('./mcp-stdio-server.js', import.meta.url));

/** Name of the variable that marks a process; its children inherit it. */
export const MARK = 'OAK_TEST_MARK';

/**
 * `mcpServers` entry of a server over stdio whose processes carry a mark.
 *
 * @param {string} mark
 * @param {import('./mcp-stdio-server.js').Settings} [settings]
 */
export function marked(mark, settings = {}) {
  return {
    command: process.execPath,
    args: [SERVER, JSON.stringify(settings)],
    env: { [MARK]: mark },
  };
}

/** The same server behind a shell, as launchers start theirs; `prefix` runs before it. */
export function launched(mark, settings = {}, prefix = '') {
  const { command, args, env } = marked(mark, settings);
  const line = `${prefix} "$0" "$@"; exit $?`;
  return { command: '/bin/sh', args: ['-c', line, command, ...args], env };
}

/**
 * Ids of the processes that carry a mark and of those that started them through the kernel, this one
 * and its host left out.
 *
 * @param {string} mark
 * @returns {Array<{ pid: number, parent: number }>}
 */
export function processesOf(mark) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const pid = Number(name);
      try {
        const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        return variables.includes(`${MARK}=${mark}`) ? [{ pid, parent: parentOf(pid) }] : [];
      } catch {
        // It ended meanwhile, or is another user's.
        return [];
      }
    });
}

/** Ids of the programs `oak-helper` that started processes with the mark. */
export function helpersOf(mark) {
  const parents = new Set(processesOf(mark).map(({ parent }) => parent));
  return [...parents].filter((pid) => nameOf(pid)?.startsWith('oak-helper'));
}

/** Whether a process runs; a zombie does not. */
export function isRunning(pid) {
  const state = stat(pid)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** Waits until nothing that carries the mark runs, and none of the helpers. */
export async function nothingLeft(mark, helpers = []) {
  await eventually(
    () => processesOf(mark).every(({ pid }) => !isRunning(pid)) && !helpers.some(isRunning),
    `no process of ${mark} is left`,
  );
}

/**
 * Starts a module in a process of its own, with nothing of the environment but what programs need. Its
 * standard input stays open.
 *
 * @param {string} source
 * @param {{ flags?: string[], env?: Record<string, string> }} [options]
 */
export function startModule(source, { flags = [], env = {} } = {}) {
  const args = ['--unhandled-rejections=strict', ...flags, '--input-type=module', '--eval', source];
  const child = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject).on('close', (code, signal) => resolve({ code, signal }));
  });
  return {
    stdin: child.stdin,
    kill: (signal) => child.kill(signal),
    /** Resolves to how it ended. */
    ended,
    /** Waits until it has printed a text. */
    said: (text) => eventually(() => out.includes(text), `the program says ${text}`),
  };
}

function parentOf(pid) {
  return Number(stat(pid)?.[1]);
}

/** The fields of a process behind its name: state, parent, …; nothing when it is gone. */
function stat(pid) {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return line.slice(line.lastIndexOf(')') + 2).split(' ');
  } catch {
    return undefined;
  }
}

function nameOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'latin1').trim();
  } catch {
    return undefined;
  }
}

/**
 * Servers of the Model Context Protocol that are not ours.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';

import { oracle } from '../../scripts/oracle.js';

const PACKAGES = join(oracle('mcp-servers'), 'node_modules', '@modelcontextprotocol');
/** The program of each server. */
const PROGRAMS = {
  everything: join(PACKAGES, 'server-everything', 'dist', 'index.js'),
  filesystem: join(PACKAGES, 'server-filesystem', 'dist', 'index.js'),
};
/** What server-everything calls its modes, and the path it then serves. */
const MODES = { http: ['streamableHttp', '/mcp'], sse: ['sse', '/sse'] };
const START_ATTEMPTS = 5;
const START_MS = 30_000;

/**
 * The configuration of a server that the agent starts.
 *
 * @param {'everything' | 'filesystem'} name
 * @param {string[]} [args]
 */
export function stdioServer(name, args = []) {
  return { command: process.execPath, args: [PROGRAMS[name], ...args] };
}

/**
 * Starts server-everything on a free port; it is gone after the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {'http' | 'sse'} type
 */
export async function startEverything(t, type) {
  const [mode, path] = MODES[type];
  let running;
  t.after(() => running?.stop());
  const start = async (port) => (running = await startOn(port, mode));
  let port;
  for (let attempt = 1; !running; attempt++) {
    port = await freePort();
    // Somebody else may take the port first.
    await start(port).catch((error) => {
      if (attempt === START_ATTEMPTS) throw error;
    });
  }
  return {
    /** An element of `config.mcpServers`. */
    config: { type, url: `http://127.0.0.1:${port}${path}` },
    /** What it has written so far. */
    output: () => running.output(),
    /** Waits until it has written this. */
    wrote: (text) => running.wrote(text),
    /** Ends it and starts another at the same address. */
    async restart() {
      await running.stop();
      await start(port);
    },
  };
}

async function startOn(port, mode) {
  const child = spawn(process.execPath, [PROGRAMS.everything, mode], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      written += text;
      child.emit('written');
    });
  }
  const server = {
    output: () => written,
    async wrote(text) {
      const signal = AbortSignal.timeout(START_MS);
      while (!written.includes(text)) {
        if (child.exitCode !== null) throw new Error(`the server ended: ${written}`);
        await Promise.race([once(child, 'written', { signal }), exited]);
      }
    },
    async stop() {
      child.kill('SIGKILL');
      await exited;
    },
  };
  try {
    await server.wrote(`on port ${port}`);
    await reachable(port);
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

async function reachable(port) {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.destroy();
}

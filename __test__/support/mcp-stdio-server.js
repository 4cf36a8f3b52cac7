/**
 * An MCP server over stdio that misbehaves as its settings say: `node mcp-stdio-server.js '<json>'`.
 *
 * Written by hand, because a library would not do most of this.
 *
 * @module
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

/**
 * @typedef {object} Settings
 * @property {string} [hang] method that is never answered
 * @property {string} [banner] lines on stdout before everything else
 * @property {number} [stderrAtStart] bytes written to stderr before the tools are listed
 * @property {number} [stderrPerCall] the same before each answer to a call
 * @property {string[]} [names] names of further tools, which tell their name
 * @property {string} [marker] what `whoami` answers
 * @property {boolean} [ignoreSigterm] whether SIGTERM and the end of stdin mean nothing
 */

/** @type {Settings} */
const settings = JSON.parse(process.argv[2] ?? '{}');
const schema = (properties = {}) => ({ type: 'object', properties });
const number = { type: 'number' };

const TOOLS = {
  echo: {
    inputSchema: schema({ text: { type: 'string' } }),
    call: ({ text }) => text,
  },
  whoami: { inputSchema: schema(), call: () => `${settings.marker} ${process.pid}` },
  environment: {
    inputSchema: schema(),
    call: () => JSON.stringify(process.env),
  },
  die: {
    inputSchema: schema({ code: number, signal: { type: 'string' } }),
    call({ code, signal }) {
      writeSync(2, 'the disk is on fire\n');
      if (signal) process.kill(process.pid, signal);
      else process.exit(code);
      return new Promise(() => {});
    },
  },
  wait: { inputSchema: schema(), call: () => new Promise(() => {}) },
  sleep: {
    inputSchema: schema({ ms: number }),
    call: ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms, 'slept')),
  },
  big: {
    inputSchema: schema({ characters: number }),
    call: ({ characters }) => 'x'.repeat(characters),
  },
  wrong: {
    inputSchema: schema(),
    call() {
      say({ jsonrpc: '2.0', id: 987_654, result: { content: [] } });
      say({ jsonrpc: '2.0', id: 'nobody', error: { code: -1, message: 'nobody' } });
      writeSync(1, 'this is no JSON\n{"half": \n[1, 2]\nnull\n');
      return 'right';
    },
  },
};
for (const name of settings.names ?? []) {
  TOOLS[name] = { inputSchema: schema(), call: () => `this is ${name}` };
}

function say(message) {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function flood(bytes = 0) {
  // Blocking, as in servers that log without looking whether anybody reads.
  for (let left = bytes; left > 0; left -= 1024) writeSync(2, `${'noise '.repeat(170)}\n`);
}

async function answer({ method, params }) {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'stdio-server', version: '1' },
      };
    case 'tools/list':
      flood(settings.stderrAtStart);
      return {
        tools: Object.entries(TOOLS).map(([name, { inputSchema }]) => ({ name, inputSchema })),
      };
    case 'tools/call': {
      flood(settings.stderrPerCall);
      const text = await TOOLS[params.name].call(params.arguments ?? {});
      return { content: [{ type: 'text', text }] };
    }
    default:
      return {};
  }
}

if (settings.banner) process.stdout.write(`${settings.banner}\n`);
if (settings.ignoreSigterm) {
  process.on('SIGTERM', () => {});
  setInterval(() => {}, 1_000);
}
createInterface({ input: process.stdin }).on('line', async (line) => {
  const request = JSON.parse(line);
  if (request.id === undefined || request.method === settings.hang) return;
  say({ jsonrpc: '2.0', id: request.id, result: await answer(request) });
});

/**
 * A program: a server on standard streams that behaves as its first argument says. The second one marks
 * its process.
 *
 * `well`; `dies` in its first call, unless the file named by the third argument exists, which it makes;
 * `floods` standard error before it lists its tools and in each call; `hangs` in the handshake.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [behaviour, , once] = process.argv.slice(2);
const answer = (id, result) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
const tool = (name) => ({ name, inputSchema: { type: 'object' } });

function die() {
  if (existsSync(once)) return false;
  writeFileSync(once, '');
  process.stderr.write('out of cheese\n', () => process.exit(1));
  return true;
}

function flood(bytes) {
  if (behaviour === 'floods') process.stderr.write('x'.repeat(bytes));
}

const HANDLERS = {
  initialize: ({ id }) => {
    if (behaviour === 'hangs') return;
    const serverInfo = { name: 'odd', version: '1' };
    answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo });
  },
  'tools/list': ({ id }) => {
    flood(1024 * 1024);
    answer(id, { tools: [tool('echo'), tool('env'), tool('do.it now')] });
  },
  'tools/call': ({ id, params }) => {
    if (behaviour === 'dies' && die()) return;
    flood(256 * 1024);
    const shown = params.name === 'env' ? process.env : { name: params.name, ...params.arguments };
    answer(id, { content: [{ type: 'text', text: JSON.stringify(shown) }] });
  },
};

process.stdout.write('This line is no message.\n');
for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  HANDLERS[message.method]?.(message);
}

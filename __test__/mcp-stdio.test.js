/** MCP servers as child processes: real ones. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { toolCalls } from '../emulator/index.js';
import { errorsOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn } from './support/gateway.js';
import { stdioServer } from './support/mcp-servers.js';
import { temporaryFolder } from './support/sessions.js';

const DONE = { when: { hasToolResult: true }, reply: 'Done.' };

/** The results of the calls, as the model sees them. */
const told = (gateway) => resultsIn(gateway.messages(-1).at(-1));

test('stdio: the tools of server-everything are offered and called', async (t) => {
  const calls = toolCalls([
    { id: 'toolu_0', name: 'mcp__everything__echo', input: { message: 'grüße 北京😀' } },
    { id: 'toolu_1', name: 'mcp__everything__get-sum', input: { a: 2, b: 40 } },
  ]);
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calls }],
    mcpServers: { everything: { ...stdioServer('everything'), alwaysLoad: true } },
  });
  const elements = await gateway.send('go');
  assert.deepEqual(errorsOf(elements), []);
  const results = JSON.stringify(told(gateway));
  assert.match(results, /grüße 北京😀/);
  assert.match(results, /The sum of 2 and 40 is 42\./);
});

test('stdio: server-filesystem reads a file', async (t) => {
  const path = temporaryFolder(t);
  writeFileSync(join(path, 'a.txt'), 'what the file says');
  const input = { path: join(path, 'a.txt') };
  const gateway = await gatewayFor(t, {
    rules: [
      DONE,
      { reply: toolCalls([{ id: 'toolu_0', name: 'mcp__files__read_text_file', input }]) },
    ],
    mcpServers: { files: { ...stdioServer('filesystem', [path]), alwaysLoad: true } },
  });
  await gateway.send('go');
  assert.match(JSON.stringify(told(gateway)), /what the file says/);
});

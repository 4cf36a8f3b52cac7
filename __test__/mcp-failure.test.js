/** Servers that cannot be started cost their tools, not the run. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { setUp, tool } from './support/boundary.js';
import { errorsOf, readStream, textOf } from './support/gateway-elements.js';

const MISSING = { command: 'oak-test-no-such-command' };
const RULES = [
  { when: { hasToolResult: true }, reply: text('Done.') },
  { reply: toolCalls([{ id: 'toolu_1', name: 'own', input: {} }]) },
];

test('a server that cannot be started is told once, with its name, and the run goes on', async (t) => {
  const { session } = await setUp(t, {
    rules: RULES,
    tools: [tool('own')],
    mcpServers: { gone: MISSING, off: { ...MISSING, args: ['x'] } },
  });
  const elements = await readStream(session.send('go'));
  const errors = errorsOf(elements);
  assert.deepEqual(
    errors.map(({ code, name }) => [code, name]),
    [
      ['E_MCP_SERVER', 'McpError'],
      ['E_MCP_SERVER', 'McpError'],
    ],
  );
  assert.match(errors[0].message, /^MCP server "gone" could not be started: /);
  assert.match(errors[1].message, /^MCP server "off" could not be started: /);
  assert.equal(textOf(elements), 'Done.');
  assert.equal(elements.at(-1).stopReason, 'end_turn');
});

test('an agent with servers that nobody needed closes at once', async (t) => {
  const { agent } = await setUp(t, { mcpServers: { gone: MISSING } });
  await agent.close();
});

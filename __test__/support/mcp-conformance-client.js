/**
 * The client that the scenarios of the MCP project are run with: an agent whose model calls the tools
 * that a scenario is about.
 *
 *   node mcp-conformance-client.js <address of the server>    MCP_CONFORMANCE_SCENARIO names the scenario
 *
 * @module
 */
import assert from 'node:assert/strict';

import { startEmulator, toolCalls } from '../../emulator/index.js';
import { createAgent } from '../../index.js';
import { errorsOf, idleOf, readStream } from './gateway-elements.js';

/** The calls of each scenario. */
const CALLS = {
  initialize: [],
  tools_call: [{ name: 'add_numbers', input: { a: 5, b: 3 } }],
  'sse-retry': [{ name: 'test_reconnection', input: {} }],
};

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
assert.ok(Object.hasOwn(CALLS, scenario), `no calls are known for the scenario ${scenario}`);
const url = process.argv.at(-1);

const calls = CALLS[scenario].map(({ name, input }) => ({ name: `mcp__server__${name}`, input }));
const emulator = await startEmulator({
  rules: [
    { when: { hasToolResult: true }, reply: 'Done.' },
    { reply: calls.length > 0 ? toolCalls(calls) : 'Done.' },
  ],
});
const agent = createAgent({
  envId: 'test-env',
  model: { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey },
  mcpServers: { server: { type: 'http', url, alwaysLoad: true } },
});
try {
  const session = await agent.startSession({ userId: 'ann' });
  const elements = await readStream(session.send('go'));
  assert.deepEqual(errorsOf(elements), []);
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  const logs = elements.filter(({ sessionUpdate }) => sessionUpdate === 'log');
  assert.deepEqual(logs, [], 'the server could be used');
  const failed = elements.filter(({ status }) => status === 'failed');
  assert.deepEqual(failed, [], 'every call succeeded');
} finally {
  await agent.close();
  await emulator.close();
}

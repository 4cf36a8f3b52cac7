/** Servers of all four kinds beside each other, each of them a real one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';

import { toolCalls } from '../emulator/index.js';
import { createSdkMcpServer, tool } from '../index.js';
import { collect } from './support/boundary.js';
import { errorsOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn } from './support/gateway.js';
import { startEverything, stdioServer } from './support/mcp-servers.js';

const DONE = { when: { hasToolResult: true }, reply: 'Done.' };

function localServer(onCall = () => {}) {
  const greet = tool('greet', 'Greets.', { name: z.string() }, async ({ name }) => {
    onCall();
    await new Promise(setImmediate);
    return { content: [{ type: 'text', text: `Hello ${name}.` }] };
  });
  return createSdkMcpServer({ name: 'local', tools: [greet] });
}

test('one answer calls tools of stdio, HTTP, SSE and in-process servers', async (t) => {
  const [http, sse] = await Promise.all([startEverything(t, 'http'), startEverything(t, 'sse')]);
  const everything = ['stdio', 'http', 'sse'];
  const calls = everything.map((name) => ({
    id: `toolu_${name}`,
    name: `mcp__${name}__echo`,
    input: { message: `over ${name}` },
  }));
  calls.push({ id: 'toolu_local', name: 'mcp__local__greet', input: { name: 'Ann' } });
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: toolCalls(calls) }],
    mcpServers: {
      stdio: { ...stdioServer('everything'), alwaysLoad: true },
      http: { ...http.config, alwaysLoad: true },
      sse: { ...sse.config, alwaysLoad: true },
      local: localServer(),
    },
  });
  const elements = await gateway.send('go');
  assert.deepEqual(errorsOf(elements), []);
  assert.equal(textOf(elements), 'Done.');
  const results = resultsIn(gateway.messages(-1).at(-1));
  assert.deepEqual(
    results.map(([id, , isError]) => [id, isError]),
    calls.map(({ id }) => [id, false]),
  );
  const texts = JSON.stringify(results);
  for (const name of everything) assert.match(texts, new RegExp(`over ${name}`));
  assert.match(texts, /Hello Ann\./);
});

test('50 sends at once share one server of the program', async (t) => {
  let called = 0;
  const call = { id: 'toolu_1', name: 'mcp__local__greet', input: { name: 'Ann' } };
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: toolCalls([call]) }],
    mcpServers: { local: localServer(() => (called += 1)) },
  });
  const sends = Array.from({ length: 50 }, async (_, at) => {
    const session = await gateway.agent.startSession({ userId: `user-${at}` });
    return collect(session.send('go'));
  });
  for (const elements of await Promise.all(sends)) {
    assert.equal(textOf(elements), 'Done.');
    assert.deepEqual(errorsOf(elements), []);
  }
  assert.equal(called, 50);
});

test('input that the schema of a tool refuses does not reach the server', async (t) => {
  let called = 0;
  const call = { id: 'toolu_1', name: 'mcp__local__greet', input: { name: 5 } };
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: toolCalls([call]) }],
    mcpServers: { local: localServer(() => (called += 1)) },
  });
  await gateway.send('go');
  const [[, text, isError]] = resultsIn(gateway.messages(-1).at(-1));
  assert.equal(isError, true);
  assert.match(
    text,
    /InputValidationError: the input of mcp__local__greet does not fit its schema/,
  );
  assert.match(text, /name: 5 is not of type/);
  assert.equal(called, 0);
});

test('hooks and elements carry the full name', async (t) => {
  const seen = [];
  const call = { id: 'toolu_1', name: 'mcp__local__greet', input: { name: 'Ann' } };
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: toolCalls([call]) }],
    mcpServers: { local: localServer() },
    hooks: {
      onToolStart: ({ toolName }) => void seen.push(toolName),
      onToolEnd: ({ toolName }) => void seen.push(toolName),
    },
  });
  const elements = await gateway.send('go');
  assert.deepEqual(seen, ['mcp__local__greet', 'mcp__local__greet']);
  const announced = elements.find(({ sessionUpdate }) => sessionUpdate === 'tool_call');
  assert.equal(announced.title, 'mcp__local__greet');
});

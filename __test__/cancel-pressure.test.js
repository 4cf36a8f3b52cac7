/** A consumer that stops reading slows the gateway and does not grow memory. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { createAgent } from '../index.js';
import { assertEnd, collect, eventually, isText, textOf, until } from './support/boundary.js';

const DELTAS = 50_000;
const DELTA = 'x'.repeat(400);
const QUIET_MS = 500;

const event = (data) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

function* answer() {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const message = { id: 'msg_1', type: 'message', role: 'assistant', content: [], usage };
  const delta = { type: 'text_delta', text: DELTA };
  yield { type: 'message_start', message };
  yield { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
  for (let at = 0; at < DELTAS; at += 1) yield { type: 'content_block_delta', index: 0, delta };
  yield { type: 'content_block_stop', index: 0 };
  yield { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage };
  yield { type: 'message_stop' };
}

/** A gateway that writes as fast as the client reads, and counts. */
async function flood(t) {
  const state = { written: 0, at: 0, closed: false, url: '' };
  const server = createServer(async (request, response) => {
    request.resume();
    let wake = () => {};
    response.on('drain', () => wake());
    response.on('close', () => {
      state.closed = true;
      wake();
    });
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const data of answer()) {
      if (state.closed) return;
      const text = event(data);
      state.written += text.length;
      state.at = performance.now();
      if (!response.write(text)) await new Promise((resolve) => (wake = resolve));
    }
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  state.url = `http://127.0.0.1:${server.address().port}`;
  return state;
}

async function sessionAt(t, url) {
  const agent = createAgent({ envId: 'e', model: { id: 'glm', apiBaseUrl: url, apiKey: 'k' } });
  t.after(() => agent.close());
  return agent.startSession({ userId: 'u' });
}

/** Waits until the gateway could write nothing for a while. */
function stalled(gateway) {
  const isQuiet = () => gateway.at > 0 && performance.now() - gateway.at > QUIET_MS;
  return eventually(isQuiet, 'the gateway stalls', 60_000);
}

test('a consumer that stops reading stalls the gateway; going on gives all of the text', async (t) => {
  const gateway = await flood(t);
  const session = await sessionAt(t, gateway.url);
  const stream = session.send('flood me');
  const first = await until(stream, isText);
  const before = process.memoryUsage().rss;
  await stalled(gateway);
  assert.ok(gateway.written < (DELTAS * DELTA.length) / 2, `written: ${gateway.written}`);
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 100 << 20, `grown by ${grown}`);
  const elements = await collect(stream);
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.equal(textOf([first, ...elements]).length, DELTAS * DELTA.length);
});

test('break with a full channel ends at once and closes the connection', async (t) => {
  const gateway = await flood(t);
  const session = await sessionAt(t, gateway.url);
  const stream = session.send('flood me');
  await until(stream, isText);
  await stalled(gateway);
  await stream.return();
  await eventually(() => gateway.closed, 'the connection is closed');
  await session.settled();
});

test('abort() with a full channel resolves though nobody reads, and idle is still told', async (t) => {
  const gateway = await flood(t);
  const session = await sessionAt(t, gateway.url);
  const stream = session.send('flood me');
  await until(stream, isText);
  await stalled(gateway);
  await session.abort('enough');
  await eventually(() => gateway.closed, 'the connection is closed');
  assertEnd(await collect(stream), { stopReason: 'aborted', reason: 'enough' });
});

test('close() of the agent with a full channel resolves though nobody reads', async (t) => {
  const gateway = await flood(t);
  const agent = createAgent({
    envId: 'e',
    model: { id: 'glm', apiBaseUrl: gateway.url, apiKey: 'k' },
  });
  const session = await agent.startSession({ userId: 'u' });
  const stream = session.send('flood me');
  await until(stream, isText);
  await stalled(gateway);
  await agent.close();
  await eventually(() => gateway.closed, 'the connection is closed');
});

test('prompt() reads on by itself', async (t) => {
  const gateway = await flood(t);
  const session = await sessionAt(t, gateway.url);
  const { text } = await session.prompt('flood me');
  assert.equal(text.length, DELTAS * DELTA.length);
});

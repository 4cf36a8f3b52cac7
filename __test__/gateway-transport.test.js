import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { startEmulator, text } from '../emulator/index.js';
import { createAgent } from '../index.js';
import {
  chunksOf,
  errorOf,
  idleOf,
  readStream,
  restartsOf,
  textOf,
} from './support/gateway-elements.js';
import { SOON, gatewayFor } from './support/gateway.js';

const ONCE = { maxRetries: 0 };

/** A session of an agent that talks to some address. */
async function sessionAt(t, apiBaseUrl, model) {
  const agent = createAgent({
    envId: 'x',
    model: { id: 'glm', apiBaseUrl, apiKey: 'top-secret', ...model },
  });
  t.after(() => agent.close());
  return agent.startSession({ userId: 'ann' });
}

/** A server on a free port; gives its address. */
async function serverFor(t, handler) {
  const server = createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return server.address().port;
}

test('transport: a refused connection is tried again, then told', async (t) => {
  const emulator = await startEmulator({ rules: [] });
  await emulator.close();
  const session = await sessionAt(t, emulator.gatewayUrl, { maxRetries: 1 });
  const error = errorOf(await readStream(session.send('hi')));
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_NETWORK', true]);
  assert.equal(error.details.attempts, 2);
  assert.equal(error.status, undefined);
  assert.match(error.message, new RegExp(new URL(emulator.gatewayUrl).host));
});

test('transport: a dropped connection is tried again', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: '', knobs: { dropConnection: true } }, { reply: 'here' }],
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.equal(emulator.requests.length, 2);
});

test('transport: a connection that is always dropped is a network error', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ reply: '', knobs: { dropConnection: true } }],
    model: ONCE,
  });
  const error = errorOf(await send('hi'));
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_NETWORK', true]);
  assert.equal(emulator.requests.length, 1);
});

test('transport: a page instead of an answer is told, not repeated', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ reply: 'hi', knobs: { html: true } }],
  });
  const elements = await send('hi');
  const error = errorOf(elements);
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_PROTOCOL', false]);
  assert.match(error.message, /text\/html.*apiBaseUrl/s);
  assert.doesNotMatch(error.message, /<html/);
  assert.equal(textOf(elements), '');
  assert.equal(emulator.requests.length, 1);
});

test('transport: an answer as one JSON message works without a second request', async (t) => {
  const { emulator, send, messages } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: { thinking: 'So.', text: 'It is {{toolResult}}.' } },
      { reply: { text: 'Let me see.', toolCalls: [{ name: 'now', input: { zone: 'CST' } }] } },
    ],
    knobs: { json: true },
    tools: [{ name: 'now', parameters: { type: 'object' }, execute: ({ zone }) => `noon ${zone}` }],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Let me see.It is noon CST.');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(emulator.requests.length, 2);
  assert.deepEqual(messages(1)[1].content[1].input, { zone: 'CST' });
});

test('transport: a JSON answer that breaks off is tried again', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: 'a long enough answer', knobs: { json: true, truncateBytes: 40 } },
      { reply: 'here', knobs: { json: true } },
    ],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'here');
  assert.deepEqual(restartsOf(elements), []);
  assert.equal(emulator.requests.length, 2);
});

test('transport: an event of broken JSON is a protocol error, and is tried again', async (t) => {
  const broken = { reply: text(['one', 'two']), knobs: { invalidJsonAfter: 1 } };
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, ...broken }, { reply: 'here' }],
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.equal(emulator.requests.length, 2);
  const { send: sendOnce } = await gatewayFor(t, { rules: [broken], model: ONCE });
  const error = errorOf(await sendOnce('hi'));
  assert.equal(error.code, 'E_MODEL_PROTOCOL');
  assert.ok(error.message.length < 1_000);
});

test('transport: a line that never ends is refused before it fills the memory', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ reply: 'hi', knobs: { hugeLine: 200 << 20 } }],
    model: ONCE,
  });
  const before = process.memoryUsage().rss;
  const error = errorOf(await send('hi'));
  assert.equal(error.code, 'E_MODEL_PROTOCOL');
  assert.match(error.message, /does not end/);
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
  // The emulator lives in this process too; the whole line would be 200 MB more.
  assert.ok(process.memoryUsage().rss - before < 190 << 20);
});

test('transport: a body that ends without message_stop is not an answer', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: 'half', knobs: { noMessageStop: true } }, { reply: 'whole' }],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'whole');
  assert.equal(restartsOf(elements)[0].restartReason, 'truncated');
  assert.equal(emulator.requests.length, 2);
  const { send: sendOnce } = await gatewayFor(t, {
    rules: [{ reply: 'half', knobs: { noMessageStop: true } }],
    model: { restart: 'never' },
  });
  const error = errorOf(await sendOnce('hi'));
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_TRUNCATED', true]);
});

test('transport: a body cut anywhere gives the whole text in the end', async (t) => {
  const REPLY = { text: ['Hello ', '北京😀', ' bye'], id: 'msg_0', usage: { output_tokens: 5 } };
  const { agent, emulator } = await gatewayFor(t, { rules: REPLY });
  const offsets = Array.from({ length: 45 }, (_, at) => at * 23);
  const cut = (offset) => ({
    when: { user: new RegExp(`^cut ${offset}$`) },
    times: 1,
    reply: REPLY,
    knobs: { truncateBytes: offset },
  });
  emulator.setRules([...offsets.map(cut), { reply: { ...REPLY, id: undefined } }]);
  const counts = offsets.map(async (offset) => {
    const session = await agent.startSession({ userId: 'ann' });
    const elements = await readStream(session.send(`cut ${offset}`));
    assert.equal(textOf(elements), REPLY.text.join(''), `cut at ${offset}`);
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    const ids = new Set(chunksOf(elements).map(({ messageId }) => messageId));
    assert.equal(ids.size, restartsOf(elements).length + 1, `cut at ${offset}`);
    return restartsOf(elements).length;
  });
  const restarts = await Promise.all(counts);
  // Some cuts fall before the text, some into it, some behind the answer.
  assert.ok(restarts.includes(0) && restarts.includes(1));
  assert.ok(emulator.requests.length > offsets.length + 20);
});

/** A gateway that sends everybody to another server, and what both have seen. */
async function redirecting(t, status) {
  const strangers = [];
  const stranger = await serverFor(t, (request, response) => {
    strangers.push(request.headers);
    response.end('{}');
  });
  const seen = [];
  const port = await serverFor(t, (request, response) => {
    seen.push(request.url);
    request.resume();
    const location = `http://localhost:${stranger}/v1/messages`;
    response.writeHead(status, { location, ...SOON }).end();
  });
  return { url: `http://127.0.0.1:${port}`, seen, strangers };
}

for (const status of [301, 302, 307, 308]) {
  test(`transport: a redirect with ${status} is refused, and the key stays here`, async (t) => {
    const { url, strangers } = await redirecting(t, status);
    const session = await sessionAt(t, url, ONCE);
    const elements = await readStream(session.send('hi'));
    const error = errorOf(elements);
    assert.deepEqual([error.code, error.status], ['E_MODEL_PROTOCOL', status]);
    assert.match(error.message, /apiBaseUrl.*redirect/s);
    assert.doesNotMatch(JSON.stringify(elements), /top-secret/);
    assert.deepEqual(strangers, []);
  });
}

test('transport: a redirect is not tried again, it would be the same', async (t) => {
  const { url, seen } = await redirecting(t, 302);
  const session = await sessionAt(t, url, { maxRetries: 3 });
  const error = errorOf(await readStream(session.send('hi')));
  assert.equal(error.retryable, false);
  assert.equal(seen.length, 1);
});

test('transport: the key is sent as a bearer token, and shown nowhere', async (t) => {
  const { emulator, send } = await gatewayFor(t, { rules: 'hi', model: { apiKey: 'wrong-key' } });
  const elements = await send('hi');
  assert.equal(emulator.requests[0].headers.authorization, 'Bearer wrong-key');
  assert.equal(emulator.requests[0].headers['x-api-key'], undefined);
  assert.equal(errorOf(elements).code, 'E_MODEL_AUTH');
  assert.doesNotMatch(JSON.stringify(elements), /wrong-key/);
});

test('transport: a gateway that quotes the key does not get it into the error', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: (_, { headers }) => ({
      status: 400,
      error: { message: `saw ${headers.authorization}` },
    }),
    model: ONCE,
  });
  const { message } = errorOf(await send('hi'));
  assert.match(message, /saw Bearer/);
  assert.doesNotMatch(message, /emulator-key/);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, startEmulator, text, toolCall } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { collect } from './support/boundary.js';
import {
  chunksOf,
  errorOf,
  errorsOf,
  idleOf,
  readStream,
  restartsOf,
  textOf,
} from './support/gateway-elements.js';
import { SOON, tool } from './support/gateway.js';

const modelsOf = ({ requests }) => requests.map(({ body }) => body.model);

/** An agent with two models at one emulator; `primary` and `second` are fields of them. */
async function twoModels(t, { rules, primary, second, ...config }) {
  const emulator = await startEmulator({ rules });
  const at = { apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey };
  const agent = createAgent({
    envId: 'test-env',
    model: [
      { id: 'first', ...at, ...primary },
      { id: 'second', ...at, ...second },
    ],
    ...config,
  });
  t.after(async () => {
    await agent.close();
    assert.deepEqual(emulator.violations, []);
    await emulator.close();
  });
  const session = await agent.startSession({ userId: 'ann' });
  const send = (input, options) => readStream(session.send(input, options));
  return { emulator, agent, session, send };
}

const failing = (reply, knobs) => [{ when: { model: 'first' }, reply, knobs }, { reply: 'Hello.' }];

for (const status of [429, 500, 503, 529]) {
  test(`fallback: after ${status} the second model answers`, async (t) => {
    const { emulator, send } = await twoModels(t, { rules: failing(httpError(status, {}, SOON)) });
    const elements = await send('hi');
    assert.equal(textOf(elements), 'Hello.');
    assert.deepEqual([errorsOf(elements), restartsOf(elements)], [[], []]);
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    // The primary has two retries at most.
    assert.deepEqual(modelsOf(emulator), ['first', 'first', 'first', 'second']);
    const logs = elements.filter(({ sessionUpdate }) => sessionUpdate === 'log');
    assert.equal(logs.length, 1);
    assert.match(logs[0].message, /first.*second/);
    assert.notEqual(logs[0].level, 'error');
  });
}

for (const [name, knobs] of Object.entries({
  'a dropped connection': { dropConnection: true },
  'an overload in the stream': { errorAfter: { events: 0 } },
  'a silent gateway': { hangHeaders: true },
})) {
  test(`fallback: after ${name} the second model answers`, async (t) => {
    const { emulator, send } = await twoModels(t, {
      rules: failing('x', knobs),
      primary: { maxRetries: 0 },
      limits: { firstByteMs: 300 },
    });
    assert.equal(textOf(await send('hi')), 'Hello.');
    assert.deepEqual(modelsOf(emulator), ['first', 'second']);
  });
}

test('fallback: a gateway that nobody listens at is left', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: [{ reply: 'Hello.' }],
    primary: { apiBaseUrl: 'http://127.0.0.1:1', maxRetries: 0 },
  });
  assert.equal(textOf(await send('hi')), 'Hello.');
  assert.deepEqual(modelsOf(emulator), ['second']);
});

for (const [status, code] of Object.entries({
  400: 'E_MODEL_REQUEST',
  401: 'E_MODEL_AUTH',
  403: 'E_MODEL_AUTH',
  404: 'E_MODEL_NOT_FOUND',
})) {
  test(`fallback: not after ${status}`, async (t) => {
    const { emulator, send } = await twoModels(t, { rules: failing(httpError(Number(status))) });
    assert.equal(errorOf(await send('hi')).code, code);
    assert.deepEqual(modelsOf(emulator), ['first']);
  });
}

test('fallback: fewer retries of the primary stay fewer', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: failing(httpError(503, {}, SOON)),
    primary: { maxRetries: 1 },
  });
  await send('hi');
  assert.deepEqual(modelsOf(emulator), ['first', 'first', 'second']);
});

test('fallback: the last model has its own retries, and its error ends the run', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: [{ reply: httpError(503, { message: 'all down' }, SOON) }],
    second: { maxRetries: 3 },
  });
  const elements = await send('hi');
  const error = errorOf(elements);
  assert.deepEqual([error.code, error.details.attempts], ['E_MODEL_SERVER', 4]);
  assert.deepEqual(modelsOf(emulator), [...Array(3).fill('first'), ...Array(4).fill('second')]);
});

test('fallback: each model has its own settings', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: failing(httpError(529)),
    primary: { maxRetries: 0, maxTokens: 100, headers: { 'x-of': 'first' } },
    second: { protocol: 'openai', maxTokens: 200, options: { seed: 7 } },
  });
  assert.equal(textOf(await send('hi')), 'Hello.');
  const [first, second] = emulator.requests;
  assert.deepEqual([first.body.max_tokens, first.headers['x-of']], [100, 'first']);
  assert.deepEqual(
    [second.body.max_tokens, second.body.seed, second.headers['x-of']],
    [200, 7, undefined],
  );
  assert.match(second.path, /chat\/completions$/);
});

test('fallback: text of the primary is voided when the second takes over', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: failing(text(['Lost ', 'words']), { errorAfter: { events: 4 } }),
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Hello.');
  assert.equal(restartsOf(elements).at(-1).messageId, chunksOf(elements).at(-2).messageId);
  assert.deepEqual(modelsOf(emulator), ['first', 'first', 'first', 'second']);
});

for (const [name, config] of Object.entries({
  "restart: 'never'": { primary: { restart: 'never' } },
  "the format 'events'": { streamFormat: 'events' },
})) {
  test(`fallback: never after text was shown with ${name}`, async (t) => {
    const { emulator, session } = await twoModels(t, {
      rules: failing(text(['Shown ', 'words']), { errorAfter: { events: 4 } }),
      ...config,
    });
    const elements = await collect(session.send('hi'));
    assert.deepEqual(modelsOf(emulator), ['first']);
    assert.doesNotMatch(JSON.stringify(elements), /Hello/);
    assert.equal(elements.at(-1).stopReason, 'error');
  });
}

test('fallback: every request of a run begins with the primary', async (t) => {
  const { emulator, send } = await twoModels(t, {
    rules: [
      { times: 1, when: { model: 'first' }, reply: httpError(529) },
      { when: { hasToolResult: true }, reply: 'Done by {{model}}.' },
      { reply: toolCall('now', {}) },
    ],
    primary: { maxRetries: 0 },
    tools: [tool('now', () => 'noon')],
  });
  assert.equal(textOf(await send('time?')), 'Done by first.');
  assert.deepEqual(modelsOf(emulator), ['first', 'second', 'first']);
});

test('fallback: three models are asked in order', async (t) => {
  const emulator = await startEmulator({
    rules: [{ when: { model: 'c' }, reply: 'From c.' }, { reply: httpError(503) }],
  });
  const at = { apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey, maxRetries: 0 };
  const agent = createAgent({ envId: 'e', model: ['a', 'b', 'c'].map((id) => ({ id, ...at })) });
  t.after(async () => {
    await agent.close();
    assert.deepEqual(emulator.violations, []);
    await emulator.close();
  });
  assert.equal((await agent.prompt('hi')).text, 'From c.');
  assert.deepEqual(modelsOf(emulator), ['a', 'b', 'c']);
});

test('fallback: an abort does not ask the next model', async (t) => {
  const { emulator, session, send } = await twoModels(t, {
    rules: failing(text(['one', 'two']), { stallAfter: 3 }),
  });
  for await (const { sessionUpdate } of session.send('hi')) {
    if (sessionUpdate === 'agent_message_chunk') session.abort();
  }
  await session.settled();
  assert.deepEqual(modelsOf(emulator), ['first']);
  assert.equal(textOf(await send('more', { model: 'second' })), 'Hello.');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError } from '../emulator/index.js';
import { errorOf, idleOf, restartsOf, textOf } from './support/gateway-elements.js';
import { SOON, gatewayFor } from './support/gateway.js';

const TRIED_AGAIN = [408, 409, 425, 429, 500, 502, 503, 504, 529];

for (const status of TRIED_AGAIN) {
  test(`retry: ${status} is tried again until it works`, async (t) => {
    const { emulator, send } = await gatewayFor(t, {
      rules: [{ times: 3, reply: httpError(status, {}, SOON) }, { reply: 'here' }],
    });
    const elements = await send('hi');
    assert.equal(textOf(elements), 'here');
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    assert.deepEqual(restartsOf(elements), []);
    assert.equal(elements.filter(({ sessionUpdate }) => sessionUpdate === 'log').length, 0);
    assert.equal(emulator.requests.length, 4);
    const [first, ...others] = emulator.requests.map(({ body }) => body);
    for (const other of others) assert.deepEqual(other, first);
  });
}

const NEVER = {
  400: 'E_MODEL_REQUEST',
  401: 'E_MODEL_AUTH',
  402: 'E_MODEL_REQUEST',
  403: 'E_MODEL_AUTH',
  404: 'E_MODEL_NOT_FOUND',
  413: 'E_MODEL_REQUEST',
  422: 'E_MODEL_REQUEST',
};

for (const [key, code] of Object.entries(NEVER)) {
  const status = Number(key);
  test(`retry: ${status} is told at once, after one request`, async (t) => {
    const { emulator, send } = await gatewayFor(t, {
      rules: [{ times: 1, reply: httpError(status, { message: 'no, because' }) }, { reply: 'ok' }],
    });
    const elements = await send('hi');
    const error = errorOf(elements);
    assert.equal(emulator.requests.length, 1);
    assert.deepEqual(
      [error.code, error.name, error.status, error.retryable],
      [code, 'ModelError', status, false],
    );
    assert.equal(error.requestId, emulator.requests[0].id);
    assert.equal(error.details.attempts, 1);
    assert.match(error.message, /no, because/);
    assert.equal(idleOf(elements).stopReason, 'error');
    assert.equal(elements.indexOf(error), elements.length - 2, 'just before idle');
    // The session is not spoilt by it.
    assert.equal(textOf(await send('once more')), 'ok');
  });
}

test('retry: errors that a user can repair say how', async (t) => {
  for (const [status, hint] of [
    [401, /apiKey.*TCB_API_KEY/s],
    [403, /apiKey/],
    [404, /model\.id \(glm\)/],
  ]) {
    const { send } = await gatewayFor(t, { rules: httpError(status) });
    assert.match(errorOf(await send('hi')).message, hint);
  }
});

test('retry: a prompt that is too long has its own code', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: httpError(400, { message: 'prompt is too long: 250000 tokens > 200000 maximum' }),
  });
  const error = errorOf(await send('hi'));
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_CONTEXT', false]);
  assert.equal(emulator.requests.length, 1);
});

test('retry: x-should-retry: false forbids it', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: httpError(503, {}, { 'x-should-retry': 'false' }),
  });
  const error = errorOf(await send('hi'));
  assert.deepEqual([error.code, error.retryable], ['E_MODEL_SERVER', false]);
  assert.equal(emulator.requests.length, 1);
});

test('retry: the error says how often was tried', async (t) => {
  for (const maxRetries of [0, 1, 4]) {
    const { emulator, send } = await gatewayFor(t, {
      rules: httpError(429, { message: 'slow down' }, SOON),
      model: { maxRetries },
    });
    const error = errorOf(await send('hi'));
    assert.equal(emulator.requests.length, maxRetries + 1);
    assert.equal(error.details.attempts, maxRetries + 1);
    assert.deepEqual(
      [error.code, error.status, error.retryable],
      ['E_MODEL_RATE_LIMIT', 429, true],
    );
    assert.equal(error.requestId, emulator.requests.at(-1).id);
  }
});

test('retry: ten times by default', async (t) => {
  const { emulator, send } = await gatewayFor(t, { rules: httpError(529, {}, SOON) });
  assert.equal(errorOf(await send('hi')).details.attempts, 11);
  assert.equal(emulator.requests.length, 11);
});

test('retry: the wait that the gateway asks for is kept', async (t) => {
  const at = [];
  const { send } = await gatewayFor(t, {
    rules: () => {
      at.push(performance.now());
      return at.length === 1 ? httpError(429, {}, { 'retry-after': '1' }) : 'here';
    },
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.ok(at[1] - at[0] >= 990, `${at[1] - at[0]} ms`);
});

test('retry: each request of a run has its own attempts', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      { times: 2, reply: httpError(500, {}, SOON) },
      { times: 1, reply: { toolCalls: [{ name: 'now' }] } },
      { times: 2, reply: httpError(500, {}, SOON) },
      { reply: 'here' },
    ],
    model: { maxRetries: 2 },
    tools: [{ name: 'now', parameters: { type: 'object' }, execute: () => 'noon' }],
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.equal(emulator.requests.length, 6);
});

test('retry: max_tokens is lowered once when the gateway names its limit', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      {
        when: ({ max_tokens: asked }) => asked > 8_192,
        reply: httpError(400, {
          message: 'max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens',
        }),
      },
      { reply: 'here' },
    ],
  });
  assert.equal(textOf(await send('hi')), 'here');
  await send('more');
  // Learnt for good.
  assert.deepEqual(
    emulator.requests.map(({ body }) => body.max_tokens),
    [32_000, 8_192, 8_192],
  );
});

test('retry: max_tokens is lowered only once', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: ({ max_tokens: asked }) =>
      httpError(400, { message: `max_tokens: ${asked} > ${asked / 2}, which is the maximum` }),
  });
  const error = errorOf(await send('hi'));
  assert.deepEqual([error.code, error.status], ['E_MODEL_REQUEST', 400]);
  assert.deepEqual(
    emulator.requests.map(({ body }) => body.max_tokens),
    [32_000, 16_000],
  );
});

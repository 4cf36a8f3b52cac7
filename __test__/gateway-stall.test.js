import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text } from '../emulator/index.js';
import { errorOf, idleOf, readStream, restartsOf, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { gatewayFor } from './support/gateway.js';

const ONE_TRY = { maxRetries: 0, restart: 'never' };
const SHORT = { idleMs: 150 };
/** Far below the limits that a stall must not wait for, far above what a busy machine needs. */
const PROMPTLY = 10_000;

function assertTimedOut(elements, limit) {
  const error = errorOf(elements);
  assert.equal(error.code, 'E_MODEL_TIMEOUT');
  assert.equal(error.name, 'ModelError');
  assert.equal(error.retryable, true);
  assert.match(error.message, limit);
  assert.equal(idleOf(elements).stopReason, 'error');
}

test('FC-A2 a stream that falls silent ends with a typed error', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ reply: text(['one', 'two']), knobs: { stallAfter: 3 } }],
    model: ONE_TRY,
    limits: SHORT,
  });
  const elements = await send('hi');
  assertTimedOut(elements, /idleMs/);
  assert.equal(textOf(elements), 'one');
  await emulator.idle();
  assert.equal(emulator.requests.length, 1);
  assert.equal(emulator.requests[0].aborted, true);
});

test('FC-A2 pings do not keep a silent stream alive', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [{ reply: text(['one', 'two']), knobs: { stallAfter: 3, stallPings: 10 } }],
    model: ONE_TRY,
    limits: SHORT,
  });
  assertTimedOut(await send('hi'), /idleMs/);
});

test('FC-A2 a slow stream that goes on never trips the limit', async (t) => {
  const words = Array.from({ length: 60 }, (_, at) => `${at} `);
  const { emulator, send } = await gatewayFor(t, {
    // Longer in all than the limit.
    rules: [{ reply: text(words), knobs: { chunkDelayMs: 40 } }],
    limits: { idleMs: 1_500 },
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), words.join(''));
  assert.equal(emulator.requests.length, 1);
});

test('FC-A2 a stall before anything was shown is repeated without a word', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: 'lost', knobs: { stallAfter: 1 } }, { reply: 'here' }],
    limits: SHORT,
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'here');
  assert.deepEqual(restartsOf(elements), []);
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(emulator.requests.length, 2);
});

test('FC-A2 headers that never come are a timeout, and are tried again', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: '', knobs: { hangHeaders: true } }, { reply: 'here' }],
    limits: { firstByteMs: 150 },
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.equal(emulator.requests.length, 2);
});

test('FC-A2 hanging headers without a retry name their limit', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [{ reply: '', knobs: { hangHeaders: true } }],
    model: ONE_TRY,
    limits: { firstByteMs: 100 },
  });
  assertTimedOut(await send('hi'), /firstByteMs/);
});

test('FC-A2 the limit on a whole request holds for a stream that never ends', async (t) => {
  const words = Array.from({ length: 2_000 }, (_, at) => `${at} `);
  const { send } = await gatewayFor(t, {
    rules: [{ reply: text(words), knobs: { chunkDelayMs: 10 } }],
    model: ONE_TRY,
    limits: { requestMs: 300 },
  });
  assertTimedOut(await send('hi'), /requestMs/);
});

const STOPS = {
  'abort()': {
    stop: ({ session }) => session.abort('enough'),
    cause: 'abort',
    reason: 'enough',
  },
  'an AbortSignal': {
    stop: ({ controller }) => controller.abort(new Error('too slow')),
    cause: 'signal',
    reason: 'too slow',
  },
};

for (const [name, { stop, cause, reason }] of Object.entries(STOPS)) {
  test(`FC-A2 ${name} ends a stalled stream at once`, async (t) => {
    const gateway = await gatewayFor(t, {
      rules: [
        { times: 1, reply: text(['one', 'two']), knobs: { stallAfter: 3 } },
        { reply: 'again' },
      ],
    });
    const { session, emulator, send } = gateway;
    const controller = new AbortController();
    const stream = session.send('hi', { signal: controller.signal });
    const elements = [];
    let stoppedAt;
    for await (const element of stream) {
      elements.push(element);
      if (element.sessionUpdate === 'agent_message_chunk') {
        stoppedAt = performance.now();
        stop({ session, controller });
      }
    }
    assert.ok(performance.now() - stoppedAt < PROMPTLY);
    assert.equal(elements.filter(({ level }) => level === 'error').length, 0);
    const { stopReason, ...idle } = idleOf(elements);
    assert.equal(stopReason, 'aborted');
    assert.deepEqual([idle.cause, idle.reason], [cause, reason]);
    await emulator.idle();
    assert.equal(emulator.requests.length, 1);
    assert.equal(emulator.requests[0].aborted, true);
    assert.equal(textOf(await send('and now?')), 'again');
  });
}

test('FC-A2 leaving the loop ends a stalled stream and frees the session', async (t) => {
  const { session, emulator } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['one', 'two']), knobs: { stallAfter: 3 } },
      { reply: 'again' },
    ],
  });
  for await (const element of session.send('hi')) {
    if (element.sessionUpdate === 'agent_message_chunk') break;
  }
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
  assert.equal(textOf(await readStream(session.send('and now?'))), 'again');
});

test('FC-A2 abort during the wait before a retry sends nothing more', async (t) => {
  const asked = deferred();
  const { session, emulator } = await gatewayFor(t, {
    rules: () => {
      asked.resolve();
      return { status: 503, headers: { 'retry-after': '60' } };
    },
  });
  const reading = readStream(session.send('hi'));
  await asked.promise;
  // The answer is out: the run waits before its next attempt.
  await emulator.idle();
  await session.abort();
  assert.equal(idleOf(await reading).stopReason, 'aborted');
  assert.equal(emulator.requests.length, 1);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text } from '../emulator/index.js';
import { AcpStreamAdapter, ModelError, createAgent } from '../index.js';
import { Mirror, adapterFor } from './support/format-adapter.js';
import { collect, deferred, eventually } from './support/boundary.js';
import {} from './support/gateway.js';

/** Far above what a busy machine needs. */
const PROMPTLY = 10_000;
const TWO_WORDS = text(['one ', 'two']);

/** Fails when a promise does not settle in time. */
async function promptly(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle`)), PROMPTLY);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Checks the standard end of a run whose adapter failed. */
function assertFault(elements, words) {
  const [log, idle] = elements.slice(-2);
  assert.equal(log.sessionUpdate, 'log');
  assert.deepEqual([log.level, log.code, log.retryable], ['error', 'E_ADAPTER', false]);
  assert.match(log.message, words);
  assert.equal(typeof log.timestamp, 'number');
  assert.deepEqual(
    [idle.sessionUpdate, idle.phase, idle.stopReason],
    ['agent_phase', 'idle', 'error'],
  );
}

function thrower(value) {
  throw value;
}

const FAULTS = {
  'throws in adapt': () => thrower(new Error('no words')),
  async *'throws before its first element'() {
    thrower(new Error('no words'));
    yield 1;
  },
  async *'throws in mid stream'(messages) {
    let left = 4;
    for await (const message of messages) {
      if (left-- === 0) thrower(new TypeError('no words'));
      yield message;
    }
  },
  async *'throws at the end'(messages) {
    yield* messages;
    throw new Error('no words');
  },
  'throws a text': () => thrower('no words'),
};

for (const [name, adapt] of Object.entries(FAULTS)) {
  test(`adapter: one that ${name} ends the run in the standard way`, async (t) => {
    const { session, emulator } = await adapterFor(t, adapt, { rules: TWO_WORDS });
    const stream = session.send('go');
    assertFault(await collect(stream), /stream adapter.*no words/);
    assert.deepEqual(await stream.next(), { value: undefined, done: true });
    // The run is over, and the session can be used again.
    await emulator.idle();
    assert.equal((await session.prompt('again')).text, 'one two');
  });
}

for (const [name, value] of Object.entries({
  undefined: undefined,
  null: null,
  zero: 0,
  'a symbol': Symbol('s'),
  'an object without words': Object.create(null),
})) {
  test(`adapter: one that throws ${name} ends the run as well`, async (t) => {
    const { read } = await adapterFor(t, () => thrower(value), { rules: TWO_WORDS });
    assertFault(await read('go'), /stream adapter/);
  });
}

for (const [name, value] of Object.entries({
  nothing: undefined,
  null: null,
  'a number': 5,
  'an object': {},
  'a promise': Promise.resolve([]),
})) {
  test(`adapter: one that gives ${name} instead of an iterable`, async (t) => {
    const { read } = await adapterFor(t, () => value, { rules: TWO_WORDS });
    const elements = await read('go');
    assertFault(elements, /stream adapter/);
    assert.match(elements[0].message, /iterable/, 'the message says what is wanted');
  });
}

test('adapter: a fault in mid stream stops the request', async (t) => {
  const { read, emulator } = await adapterFor(t, FAULTS['throws in mid stream'], {
    rules: [{ reply: text('word '.repeat(20)), knobs: { stallAfter: 12 } }],
  });
  assertFault(await read('go'), /no words/);
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
});

test('adapter: one that yields nothing gives an empty stream', async (t) => {
  const silent = async function* (messages) {
    for await (const message of messages) if (message === undefined) yield message;
  };
  const { read, session } = await adapterFor(t, silent, { rules: TWO_WORDS });
  assert.deepEqual(await read('go'), []);
  assert.equal((await session.prompt('again')).text, 'one two');
});

test('adapter: one that does not even read ends the run', async (t) => {
  const { read, session } = await adapterFor(t, async function* () {}, { rules: TWO_WORDS });
  assert.deepEqual(await read('go'), []);
  await promptly(session.settled(), 'settled()');
  assert.equal((await session.prompt('again')).text, 'one two');
});

test('adapter: what it yields after the end of the run is passed on', async (t) => {
  const more = async function* (messages) {
    yield* new AcpStreamAdapter().adapt(messages, { sessionId: 's' });
    yield { after: 'idle' };
  };
  const { read } = await adapterFor(t, more, { rules: TWO_WORDS });
  const elements = await read('go');
  assert.deepEqual(elements.at(-1), { after: 'idle' });
  assert.equal(elements.at(-2).params.update.phase, 'idle');
});

test('adapter: an instance of a class keeps its this, and has any elements', async (t) => {
  class Counter {
    #count = 0;

    async *adapt(messages) {
      for await (const { type } of messages) {
        if (type === 'stream_event') yield (this.#count += 1);
      }
    }
  }
  const { read } = await adapterFor(t, new Counter(), { rules: TWO_WORDS });
  const [first, second] = [await read('one'), await read('two')];
  assert.equal(first[0], 1);
  assert.equal(second[0], first.at(-1) + 1);
});

/** Never gives an element after its first. */
function stalling(stalled) {
  return async function* (messages) {
    const iterator = messages[Symbol.asyncIterator]();
    yield (await iterator.next()).value;
    stalled.resolve();
    await new Promise(() => {});
  };
}

for (const [name, stop] of Object.entries({
  'return()': ({ stream }) => stream.return(),
  'abort()': ({ session }) => session.abort(),
  'close()': ({ session }) => session.close(),
})) {
  test(`adapter: ${name} ends promptly while it stalls`, async (t) => {
    const stalled = deferred();
    const { session, agent, emulator } = await adapterFor(t, stalling(stalled), {
      rules: [{ times: 1, reply: TWO_WORDS, knobs: { stallAfter: 3 } }, { reply: 'again' }],
    });
    const stream = session.send('go');
    await stream.next();
    const pending = stream.next();
    await stalled.promise;
    // Stopped earlier, the run would leave the stalling rule to the next request.
    await eventually(() => emulator.requests.length === 1, 'the request');
    await promptly(stop({ stream, session }), name);
    await promptly(stream.return(), 'return()');
    assert.deepEqual(await promptly(pending, 'the pending next()'), {
      value: undefined,
      done: true,
    });
    await promptly(emulator.idle(), 'the request');
    const other = await agent.startSession({ userId: 'ann' });
    assert.equal((await other.prompt('hi')).text, 'again');
  });
}

test('adapter: leaving the loop lets it clean up and stops the run', async (t) => {
  const cleaned = deferred();
  const tidy = async function* (messages) {
    try {
      yield* messages;
    } finally {
      cleaned.resolve();
    }
  };
  const { session, emulator } = await adapterFor(t, tidy, {
    rules: [{ reply: TWO_WORDS, knobs: { stallAfter: 3 } }],
  });
  for await (const { event } of session.send('go')) {
    if (event?.type === 'content_block_delta') break;
  }
  await promptly(cleaned.promise, 'the clean-up');
  await promptly(session.settled(), 'settled()');
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
});

test('adapter: an abort is no error for the exported adapter', async (t) => {
  const { session } = await adapterFor(t, new AcpStreamAdapter(), {
    rules: [{ reply: TWO_WORDS, knobs: { stallAfter: 3 } }],
  });
  const updates = [];
  for await (const { params } of session.send('go')) {
    updates.push(params.update);
    if (params.update.sessionUpdate === 'agent_message_chunk') session.abort();
  }
  assert.deepEqual([updates.at(-1).phase, updates.at(-1).stopReason], ['idle', 'aborted']);
  assert.deepEqual(
    updates.filter(({ level }) => level === 'error'),
    [],
  );
});

test('adapter: throwOnError rejects with the error of the run', async (t) => {
  const { session } = await adapterFor(t, new Mirror(), { rules: { status: 401 } });
  const messages = [];
  const reading = (async () => {
    for await (const message of session.send('go', { throwOnError: true })) messages.push(message);
  })();
  await assert.rejects(reading, (error) => {
    assert.ok(error instanceof ModelError, `${error}`);
    assert.equal(error.code, 'E_MODEL_AUTH');
    return true;
  });
  assert.equal(messages.at(-1).type, 'result');
});

test('adapter: misuse of the session rejects and never reaches it', async (t) => {
  const mirror = new Mirror();
  const { session } = await adapterFor(t, mirror, {
    rules: [{ reply: TWO_WORDS, knobs: { stallAfter: 3 } }],
  });
  await assert.rejects(session.send('').next(), { code: 'E_INVALID_CONFIG' });
  await assert.rejects(session.send('go', { nope: 1 }).next(), { code: 'E_INVALID_CONFIG' });
  assert.equal(mirror.contexts.length, 0);
  const stream = session.send('go');
  await stream.next();
  const refused = session.send('too');
  await assert.rejects(refused.next(), { name: 'SessionError', code: 'E_SESSION_BUSY' });
  assert.deepEqual(await refused.next(), { value: undefined, done: true });
  await stream.return();
  await session.close();
  await assert.rejects(session.send('late').next(), { code: 'E_SESSION_CLOSED' });
  assert.equal(mirror.contexts.length, 1);
});

test('adapter: its shape is checked, and it excludes a format', () => {
  const config = { envId: 'e', model: { id: 'glm', apiKey: 'k' } };
  const wanted = { code: 'E_INVALID_CONFIG', message: /streamAdapter/ };
  for (const streamAdapter of [{}, { adapt: 1 }, 'acp', () => {}]) {
    assert.throws(() => createAgent({ ...config, streamAdapter }), wanted);
  }
  const both = { ...config, streamAdapter: new Mirror(), streamFormat: 'events' };
  assert.throws(() => createAgent(both), { ...wanted, message: /streamFormat.*streamAdapter/ });
});

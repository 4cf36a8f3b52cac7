/** D14: the stream is shaped like an async generator, and lazy. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertEnd, collect, errorOf, isIdle, setUp, textOf } from './support/boundary.js';

const DONE = { value: undefined, done: true };

test('send gives an object like an async generator, at once', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  async function* generator() {}
  for (const method of ['next', 'return', 'throw']) assert.equal(typeof stream[method], 'function');
  assert.equal(stream[Symbol.asyncIterator](), stream);
  assert.equal(String(stream), String(generator()));
  assert.equal(stream.then, undefined);
  await stream.return();
});

test('nothing starts before the first next: no request, no busy session', async (t) => {
  const prompts = [];
  const hooks = { onUserMessage: ({ prompt }) => void prompts.push(prompt) };
  const { session, emulator } = await setUp(t, { hooks });
  const first = session.send('first');
  session.send('never');
  session.send('');
  const third = session.send('third');
  await session.settled();
  assert.equal((await session.prompt('second')).text, 'Hello.');
  assert.deepEqual(prompts, ['second']);
  assertEnd(await collect(third), { stopReason: 'end_turn' });
  assertEnd(await collect(first), { stopReason: 'end_turn' });
  assert.deepEqual(prompts, ['second', 'third', 'first']);
  assert.equal(emulator.requests.length, 3);
});

test('4.7: a stream that was never read leaves no trace in the conversation', async (t) => {
  const { session, emulator } = await setUp(t);
  session.send('never read');
  await session.prompt('hi');
  assert.doesNotMatch(JSON.stringify(emulator.requests[0].body), /never read/);
});

test('4.7: after a first send that failed the next one works', async (t) => {
  const { session, emulator } = await setUp(t);
  emulator.setKnobs({ status: 401 });
  assert.equal((await errorOf(session.prompt('first'))).code, 'E_MODEL_AUTH');
  emulator.setKnobs({});
  assert.equal((await session.prompt('second')).text, 'Hello.');
});

test('concurrent next() calls are answered in order', async (t) => {
  const text = Array.from({ length: 300 }, (_, at) => `${at} `);
  const { session } = await setUp(t, { rules: [{ reply: { text } }] });
  const stream = session.send('count');
  const results = await Promise.all(Array.from({ length: 400 }, () => stream.next()));
  const elements = results.filter(({ done }) => !done).map(({ value }) => value);
  assert.equal(textOf(elements), text.join(''));
  assertEnd(elements, { stopReason: 'end_turn' });
  const end = results.findIndex(({ done }) => done);
  assert.ok(results.slice(end).every(({ done, value }) => done && value === undefined));
});

test('next() may be called while others wait, at any time', async (t) => {
  const text = Array.from({ length: 50 }, (_, at) => `${at} `);
  const { session } = await setUp(t, { rules: [{ reply: { text, knobs: { chunkDelayMs: 1 } } }] });
  const stream = session.send('count');
  const elements = [];
  const readers = Array.from({ length: 5 }, async () => {
    for (;;) {
      const { value, done } = await stream.next();
      if (done) return;
      elements.push(value);
    }
  });
  await Promise.all(readers);
  assert.equal(textOf(elements), text.join(''));
  assert.equal(elements.filter(isIdle).length, 1);
});

test('done stays done', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  await collect(stream);
  for (let at = 0; at < 5; at += 1) assert.deepEqual(await stream.next(), DONE);
  assert.deepEqual(await Promise.all([stream.next(), stream.next()]), [DONE, DONE]);
});

test('FC-G4: a second iteration of the same stream is empty', async (t) => {
  const { session, emulator } = await setUp(t);
  const stream = session.send('hi');
  await collect(stream);
  assert.deepEqual(await collect(stream), []);
  assert.equal(emulator.requests.length, 1);
});

test('a loop that was left cannot be taken up again', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  for await (const element of stream) if (element) break;
  assert.deepEqual(await collect(stream), []);
});

test('two iterators of one stream are one', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  const [one, other] = await Promise.all([collect(stream), collect(stream)]);
  assert.equal(textOf([...one, ...other]).length, 'Hello.'.length);
  assert.equal([...one, ...other].filter(isIdle).length, 1);
});

test('a stream that could not start rejects once, then is done', async (t) => {
  const { session } = await setUp(t);
  for (const pending of [1, 3]) {
    const stream = session.send('');
    const results = await Promise.allSettled(Array.from({ length: pending }, () => stream.next()));
    assert.equal(results[0].status, 'rejected');
    assert.equal(results[0].reason.code, 'E_INVALID_CONFIG');
    for (const { status, value } of results.slice(1)) {
      assert.equal(status, 'fulfilled');
      assert.deepEqual(value, DONE);
    }
    assert.deepEqual(await stream.next(), DONE);
  }
});

test('elements are plain, separate objects', async (t) => {
  const { session } = await setUp(t);
  const elements = await collect(session.send('hi'));
  for (const element of elements) {
    assert.equal(Object.getPrototypeOf(element), Object.prototype);
    assert.deepEqual(JSON.parse(JSON.stringify(element)), element);
    element.changed = true;
  }
  assert.equal(new Set(elements).size, elements.length);
});

test('yield* and Array.fromAsync-like readers see all elements', async (t) => {
  const { session } = await setUp(t);
  async function* outer() {
    yield* session.send('hi');
  }
  const elements = await collect(outer());
  assert.equal(textOf(elements), 'Hello.');
  assertEnd(elements, { stopReason: 'end_turn' });
});

test('return() through yield* ends the run', async (t) => {
  const { session, emulator } = await setUp(t, { knobs: { stallAfter: 3 } });
  async function* outer() {
    yield* session.send('hi');
  }
  for await (const element of outer()) if (element) break;
  await emulator.idle();
  emulator.setKnobs({});
  assert.equal((await session.prompt('hi')).text, 'Hello.');
});

/** AbortSignals: before, during and after a run; and letting go of them. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { test } from 'node:test';

import {
  assertEnd,
  collect,
  errorOf,
  eventually,
  isText,
  setUp,
  until,
} from './support/boundary.js';
import { enter } from './support/boundary-states.js';

const listeners = (signal) => getEventListeners(signal, 'abort').length;

test('a signal that fired before: no request, no tool, one idle', async (t) => {
  const { session, emulator } = await setUp(t);
  const signal = AbortSignal.abort(new Error('too late'));
  const elements = await collect(session.send('hi', { signal }));
  assertEnd(elements, { stopReason: 'aborted', cause: 'signal', reason: 'too late' });
  assert.equal((await session.prompt('hi', { signal })).stopReason, 'aborted');
  assert.equal(emulator.requests.length, 0);
  assert.equal(listeners(signal), 0);
  assertEnd(await collect(session.send('hi')), { stopReason: 'end_turn' });
});

test('agent.prompt with a signal that fired before: no request', async (t) => {
  const { agent, emulator } = await setUp(t);
  const { stopReason } = await agent.prompt('hi', { signal: AbortSignal.abort() });
  assert.equal(stopReason, 'aborted');
  assert.equal(emulator.requests.length, 0);
});

test('a signal that fires between send and the first next: no request', async (t) => {
  const { session, emulator } = await setUp(t);
  const controller = new AbortController();
  const stream = session.send('hi', { signal: controller.signal });
  controller.abort();
  assertEnd(await collect(stream), { stopReason: 'aborted', cause: 'signal' });
  assert.equal(emulator.requests.length, 0);
});

test('a signal that fires after the end changes nothing', async (t) => {
  const { session } = await setUp(t);
  const controller = new AbortController();
  const { signal } = controller;
  assertEnd(await collect(session.send('hi', { signal })), { stopReason: 'end_turn' });
  controller.abort();
  assertEnd(await collect(session.send('hi')), { stopReason: 'end_turn' });
});

test('AbortSignal.timeout stops a run with its text as the reason', async (t) => {
  const { ended } = await enter(t, 'during text', { signal: AbortSignal.timeout(300) });
  const elements = await ended;
  assertEnd(elements, { stopReason: 'aborted', cause: 'signal' });
  assert.match(elements.at(-1).reason, /timeout/);
});

for (const [name, reason, text] of [
  ['an Error', new TypeError('why not'), 'why not'],
  ['a string', 'why not', 'why not'],
  ['a number', 42, '42'],
  ['nothing', undefined, 'This operation was aborted'],
  [
    'an object that cannot be read',
    {
      toString: () => {
        throw new Error('no');
      },
    },
    undefined,
  ],
  ['an object without a prototype', Object.create(null), undefined],
  ['a symbol', Symbol('why'), 'Symbol(why)'],
  ['half a surrogate pair', 'a\ud800', undefined],
]) {
  test(`the reason of a signal may be ${name}`, async (t) => {
    const controller = new AbortController();
    const { ended } = await enter(t, 'during text', { signal: controller.signal });
    controller.abort(reason);
    const elements = await ended;
    assertEnd(elements, { stopReason: 'aborted', cause: 'signal' });
    if (text) assert.equal(elements.at(-1).reason, text);
  });
}

test('a long-lived signal keeps no listener of finished runs', async (t) => {
  const { agent, session, emulator } = await setUp(t);
  const { signal } = new AbortController();
  const before = listeners(signal);
  await collect(session.send('hi', { signal }));
  assert.equal(listeners(signal), before, 'after the end');
  await session.prompt('hi', { signal });
  await agent.prompt('hi', { signal });
  assert.equal(listeners(signal), before, 'after prompt');
  for await (const element of session.send('hi', { signal })) if (element) break;
  assert.equal(listeners(signal), before, 'after break');
  await errorOf(session.send('', { signal }).next());
  await errorOf(session.prompt('', { signal }));
  await errorOf(agent.prompt('', { signal }));
  assert.equal(listeners(signal), before, 'after a refusal');
  session.send('never read', { signal });
  assert.equal(listeners(signal), before, 'before the first next');
  emulator.setKnobs({ status: 401 });
  await errorOf(collect(session.send('hi', { signal, throwOnError: true })));
  assert.equal(listeners(signal), before, 'after a failure');
});

test('a run has one listener while it runs', async (t) => {
  const { session } = await setUp(t, { knobs: { stallAfter: 3 } });
  const { signal } = new AbortController();
  const stream = session.send('hi', { signal });
  await until(stream, isText);
  assert.equal(listeners(signal), 1);
  await stream.return();
  assert.equal(listeners(signal), 0);
});

test('one signal stops the runs of many sessions', async (t) => {
  const { agent, emulator } = await setUp(t, { knobs: { stallAfter: 3 } });
  const controller = new AbortController();
  const { signal } = controller;
  const streams = [];
  for (let at = 0; at < 8; at += 1) {
    const session = await agent.startSession({ userId: `u${at}` });
    streams.push(collect(session.send('hi', { signal })));
  }
  await eventually(() => emulator.openStreams() === 8, 'all run');
  controller.abort('all of you');
  for (const elements of await Promise.all(streams)) {
    assertEnd(elements, { stopReason: 'aborted', cause: 'signal', reason: 'all of you' });
  }
  await eventually(() => emulator.openStreams() === 0, 'all connections are closed');
});

test('a signal made by hand is as good', async (t) => {
  const { session, emulator } = await setUp(t);
  const functions = { addEventListener() {}, removeEventListener() {} };
  const signal = { aborted: true, reason: 'by hand', ...functions };
  const elements = await collect(session.send('hi', { signal }));
  assertEnd(elements, { stopReason: 'aborted', cause: 'signal', reason: 'by hand' });
  assert.equal(emulator.requests.length, 0);
});

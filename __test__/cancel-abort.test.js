/** FC-G1, FC-G3: stopping a run, wherever it is, and going on afterwards. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  assertEnd,
  collect,
  deferred,
  eventually,
  isIdle,
  setUp,
  textOf,
} from './support/boundary.js';
import { STATES, enter } from './support/boundary-states.js';

/** Ways to stop a run that ends its stream with idle. */
const WAYS = {
  'abort()': {
    stop: ({ session }) => session.abort('had enough'),
    end: { cause: 'abort', reason: 'had enough' },
  },
  'a signal': {
    options() {
      this.controller = new AbortController();
      return { signal: this.controller.signal };
    },
    stop() {
      this.controller.abort(new Error('had enough'));
    },
    end: { cause: 'signal', reason: 'had enough' },
  },
};

for (const state of Object.keys(STATES)) {
  for (const [name, way] of Object.entries(WAYS)) {
    test(`FC-G1: ${name} ${state} ends the stream with idle, and the session goes on`, async (t) => {
      const scene = await enter(t, state, way.options?.());
      const { emulator, session, calls } = scene;
      await way.stop(scene);
      assertEnd(await scene.ended, { stopReason: 'aborted', ...way.end });
      const counts = [emulator.requests.length, calls.length];
      await session.settled();
      for (const { signal } of calls) await eventually(() => signal.aborted, 'the tool is told');
      await emulator.idle();
      assert.equal(emulator.openStreams(), 0);
      assert.deepEqual([emulator.requests.length, calls.length], counts);
      const next = await collect(session.send('again'));
      assertEnd(next, { stopReason: 'end_turn' });
      assert.equal(textOf(next), 'Hello again.');
    });
  }

  test(`close() of the session ${state} ends the stream, and the session is over`, async (t) => {
    const { session, ended, emulator } = await enter(t, state);
    await session.close();
    assertEnd(await ended, { stopReason: 'aborted', cause: 'close' });
    await assert.rejects(session.send('again').next(), { code: 'E_SESSION_CLOSED' });
    await emulator.idle();
  });

  test(`close() of the agent ${state} ends the stream, and the agent is over`, async (t) => {
    const { agent, session, ended } = await enter(t, state);
    await agent.close();
    assertEnd(await ended, { stopReason: 'aborted', cause: 'close' });
    await assert.rejects(session.send('again').next(), { code: 'E_SESSION_CLOSED' });
    await assert.rejects(agent.startSession({ userId: 'ann' }), { code: 'E_SESSION_CLOSED' });
    await assert.rejects(agent.prompt('x'), { code: 'E_SESSION_CLOSED' });
  });
}

test('FC-G1: of three queued calls, the two that did not start are answered as not started', async (t) => {
  const { emulator, session, elements, ended, calls } = await enter(t, 'during a tool');
  await session.abort();
  await ended;
  assert.equal(calls.length, 1);
  const isEnd = ({ sessionUpdate, status }) =>
    sessionUpdate === 'tool_call_update' && status === 'failed';
  assert.equal(elements.filter(isEnd).length, 3);
  await session.prompt('again');
  const results = emulator.requests
    .at(-1)
    .body.messages.flatMap(({ content }) => content)
    .filter(({ type }) => type === 'tool_result');
  assert.deepEqual(
    results.map(({ is_error: failed }) => failed),
    [true, true, true],
  );
  assert.match(JSON.stringify(results[0].content), /interrupted/);
  for (const { content } of results.slice(1)) assert.match(JSON.stringify(content), /not started/);
});

test('FC-G3: an interruption is no failure and shows no internal text', async (t) => {
  const { session, elements, ended } = await enter(t, 'during a tool');
  await session.abort();
  await ended;
  const text = JSON.stringify(elements);
  assert.doesNotMatch(text, /panic|E_INTERNAL|CancellationToken|undefined|"level":"error"/);
});

test('abort() ends the stream promptly, though a tool never settles', async (t) => {
  const { session, ended } = await enter(t, 'during a tool');
  const start = performance.now();
  await Promise.all([session.abort(), ended]);
  assert.ok(performance.now() - start < 5_000);
});

test('abort() twice: the first reason counts, both resolve', async (t) => {
  const { session, ended } = await enter(t, 'during text');
  await Promise.all([session.abort('first'), session.abort('second')]);
  await session.abort('third');
  assertEnd(await ended, { stopReason: 'aborted', reason: 'first' });
});

test('abort() without a reason gives none', async (t) => {
  const { session, ended } = await enter(t, 'during text');
  await session.abort();
  const elements = await ended;
  assertEnd(elements, { stopReason: 'aborted', cause: 'abort' });
  assert.equal('reason' in elements.at(-1), false);
});

test('abort() while nothing runs changes nothing, before and after a run', async (t) => {
  const { session } = await setUp(t);
  await session.abort('x');
  assertEnd(await collect(session.send('hi')), { stopReason: 'end_turn' });
  await session.abort('x');
  assertEnd(await collect(session.send('hi')), { stopReason: 'end_turn' });
});

test('abort() does not concern a stream that has not begun', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  await session.abort();
  assertEnd(await collect(stream), { stopReason: 'end_turn' });
});

test('abort() concerns what runs when it is called, not what begins after it', async (t) => {
  const { session } = await setUp(t);
  for (let at = 0; at < 50; at += 1) {
    const aborting = session.abort('too early');
    assertEnd(await collect(session.send('hi')), { stopReason: 'end_turn' });
    await aborting;
  }
});

test('abort() with nobody reading: the rest of the stream is still there', async (t) => {
  const { session } = await setUp(t, { knobs: { stallAfter: 3 } });
  const stream = session.send('hi');
  await stream.next();
  await session.abort('nobody looks');
  const rest = await collect(stream);
  assertEnd(rest, { stopReason: 'aborted', reason: 'nobody looks' });
  assert.equal(rest.filter(isIdle).length, 1);
});

test('abort() during prompt() resolves it as aborted', async (t) => {
  const rules = [
    { when: { user: 'again' }, reply: 'x' },
    { reply: 'y', knobs: { hangHeaders: true } },
  ];
  const { session, emulator } = await setUp(t, { rules });
  const prompt = session.prompt('hi');
  await eventually(() => emulator.requests.length === 1, 'the request is there');
  await session.abort();
  assert.equal((await prompt).stopReason, 'aborted');
  assert.equal((await session.prompt('again')).text, 'x');
});

test('abort() of one session does not touch another', async (t) => {
  const rules = [
    { when: { user: 'stay' }, reply: 'done' },
    { reply: { text: 'x', knobs: { stallAfter: 3 } } },
  ];
  const { agent, session } = await setUp(t, { rules });
  const other = await agent.startSession({ userId: 'bob' });
  const held = session.send('hi');
  const free = other.send('stay');
  await Promise.all([held.next(), free.next()]);
  await session.abort();
  assertEnd(await collect(held), { stopReason: 'aborted' });
  assertEnd(await collect(free), { stopReason: 'end_turn' });
});

test('agent.close() within its deadline, though a hook never settles', async (t) => {
  const forgotten = deferred();
  const { agent, session } = await setUp(t, {
    hooks: { onSessionEnd: () => forgotten.promise },
  });
  await session.prompt('hi');
  const start = performance.now();
  await agent.close({ deadlineMs: 50 });
  assert.ok(performance.now() - start < 10_000);
  // The agent is closed once more after the test, with patience.
  forgotten.resolve();
});

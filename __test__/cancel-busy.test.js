/** FC-C4, D21: one run at a time, and whose conversation it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ResourceError, SessionError } from '../index.js';
import { assertEnd, collect, errorOf, isText, setUp, textOf, until } from './support/boundary.js';

const HELD = { knobs: { stallAfter: 3 } };

const busy = (error) => {
  assert.ok(error instanceof SessionError, String(error));
  assert.deepEqual([error.code, error.retryable], ['E_SESSION_BUSY', true]);
};

test('FC-C4: a second send is refused on its first next and does not disturb the first', async (t) => {
  const rules = [{ reply: { text: ['a', 'b', 'c'], knobs: { chunkDelayMs: 20 } } }];
  const { session, emulator } = await setUp(t, { rules });
  const first = session.send('one');
  await first.next();
  const second = session.send('two');
  busy(await errorOf(second.next()));
  assert.deepEqual(await second.next(), { value: undefined, done: true });
  busy(await errorOf(session.prompt('three')));
  const elements = await collect(first);
  assert.equal(textOf(elements), 'abc');
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.equal(emulator.requests.length, 1);
  await session.prompt('four');
  const { messages } = emulator.requests[1].body;
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  assert.doesNotMatch(JSON.stringify(messages), /two|three/);
});

test('FC-C4: of two sends at once, exactly one runs', async (t) => {
  const { session, emulator } = await setUp(t);
  const results = await Promise.allSettled([
    collect(session.send('one')),
    collect(session.send('two')),
  ]);
  const [refused] = results.filter(({ status }) => status === 'rejected');
  const [ran] = results.filter(({ status }) => status === 'fulfilled');
  busy(refused.reason);
  assertEnd(ran.value, { stopReason: 'end_turn' });
  assert.equal(emulator.requests.length, 1);
});

test('FC-C4: two Session objects with one id share the conversation and its lock', async (t) => {
  const { agent, session, emulator } = await setUp(t);
  const options = { userId: 'ann', conversationId: session.id };
  const started = await agent.startSession(options);
  const resumed = await agent.resumeSession(await session.getState());
  const byId = await agent.resumeSession(session.id);
  assert.deepEqual([started.id, resumed.id, byId.userId], [session.id, session.id, 'ann']);
  const results = await Promise.allSettled([
    collect(session.send('one')),
    collect(started.send('two')),
    collect(resumed.send('three')),
  ]);
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  await byId.prompt('four');
  assert.equal(emulator.requests.at(-1).body.messages.length, 3);
});

test('a run of one Session object is stopped through another with the same id', async (t) => {
  const { agent, session } = await setUp(t, HELD);
  const stream = session.send('hi');
  await until(stream, isText);
  await (await agent.resumeSession(session.id)).abort('over there');
  assertEnd(await collect(stream), { stopReason: 'aborted', reason: 'over there' });
});

test('a refused send does not stop the run when it is left or its signal fires', async (t) => {
  const { session, emulator } = await setUp(t, HELD);
  const first = session.send('one');
  await until(first, isText);
  const controller = new AbortController();
  const second = session.send('two', { signal: controller.signal });
  busy(await errorOf(second.next()));
  controller.abort();
  await second.return();
  assert.equal(emulator.openStreams(), 1);
  await session.abort('now');
  assertEnd(await collect(first), { cause: 'abort', reason: 'now', stopReason: 'aborted' });
});

test('D21: the conversation of another user is refused, and nothing about it told', async (t) => {
  const { agent, session } = await setUp(t);
  await session.prompt('a secret');
  for (const userId of ['bob', 'Ann', 'ann ', 'anne']) {
    const error = await errorOf(agent.startSession({ userId, conversationId: session.id }));
    assert.ok(error instanceof SessionError);
    assert.equal(error.code, 'E_SESSION_OWNER');
    assert.doesNotMatch(error.message, /"?ann"?\b|secret/);
    const options = { userId, conversationId: session.id };
    assert.equal((await errorOf(agent.prompt('hi', options))).code, 'E_SESSION_OWNER');
  }
});

test('ids are compared byte for byte', async (t) => {
  const { agent } = await setUp(t);
  const composed = await agent.startSession({ userId: 'u', conversationId: '\u00e9' });
  const decomposed = await agent.startSession({ userId: 'u', conversationId: 'e\u0301' });
  assert.notEqual(composed.id, decomposed.id);
  await agent.startSession({ userId: 'v', conversationId: '\u00c9' });
});

test('D22: agent.prompt goes on with a conversation, and else has one of its own', async (t) => {
  const { agent, session, emulator } = await setUp(t);
  await session.prompt('one');
  const options = { userId: 'ann', conversationId: session.id };
  const result = await agent.prompt('two', options);
  assert.equal(result.conversationId, session.id);
  assert.equal(emulator.requests.at(-1).body.messages.length, 3);
  const fresh = await agent.prompt('three');
  assert.notEqual(fresh.conversationId, session.id);
  assert.equal(emulator.requests.at(-1).body.messages.length, 1);
  assert.deepEqual(Object.keys(fresh).sort(), [
    ...['conversationId', 'numTurns', 'pending', 'stopReason', 'text', 'usage'],
  ]);
  assert.deepEqual([fresh.stopReason, fresh.numTurns, fresh.pending], ['end_turn', 1, []]);
});

test('D22: concurrent one-call uses do not meet', async (t) => {
  const { agent } = await setUp(t, { rules: [{ reply: 'you said {{user}}' }] });
  const prompts = Array.from({ length: 20 }, (_, at) => `n${at}`);
  const results = await Promise.all(prompts.map((prompt) => agent.prompt(prompt)));
  assert.deepEqual(
    results.map(({ text }) => text),
    prompts.map((prompt) => `you said ${prompt}`),
  );
  assert.equal(new Set(results.map(({ conversationId }) => conversationId)).size, 20);
});

test('a closed session refuses, twice closed is as good, and its id is free again', async (t) => {
  const { agent, session } = await setUp(t);
  await session.prompt('hi');
  await Promise.all([session.close(), session.close()]);
  await session.close();
  await session.abort();
  await session.settled();
  for (const call of [() => session.send('x').next(), () => session.prompt('x')]) {
    const error = await errorOf(call);
    assert.ok(error instanceof SessionError);
    assert.deepEqual([error.code, error.retryable], ['E_SESSION_CLOSED', false]);
  }
  assert.ok((await errorOf(agent.resumeSession(session.id))) instanceof ResourceError);
  const again = await agent.startSession({ userId: 'bob', conversationId: session.id });
  assert.equal((await again.prompt('hi')).stopReason, 'end_turn');
});

test('a closed agent refuses everything, twice closed is as good', async (t) => {
  const { agent, session } = await setUp(t);
  await Promise.all([agent.close(), agent.close()]);
  await agent.close({ deadlineMs: 0 });
  const calls = [
    () => agent.startSession({ userId: 'u' }),
    () => agent.prompt('x'),
    () => session.prompt('x'),
    () => session.send('x').next(),
  ];
  for (const call of calls) assert.equal((await errorOf(call)).code, 'E_SESSION_CLOSED');
});

test('a send after the end of a loop never finds the session busy, 200 times', async (t) => {
  const { session } = await setUp(t, { rules: [{ reply: 'x' }] });
  for (let at = 0; at < 200; at += 1) {
    let last;
    for await (const element of session.send('hi')) last = element;
    assert.equal(last.stopReason, 'end_turn');
  }
});

test('a send after break never finds the session busy, 100 times', async (t) => {
  const { session } = await setUp(t, { rules: [{ reply: 'some more text than one delta' }] });
  for (let at = 0; at < 100; at += 1) {
    for await (const element of session.send('hi')) if (isText(element)) break;
  }
  assert.equal((await session.prompt('hi')).stopReason, 'end_turn');
});

test('a send after idle was seen, but the stream not read to its end, is not busy', async (t) => {
  const { session } = await setUp(t);
  for (let at = 0; at < 50; at += 1) {
    await until(session.send('hi'), ({ phase }) => phase === 'idle');
  }
});

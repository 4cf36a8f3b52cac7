/** FC-G4: leaving the loop early, and `return()` and `throw()` by hand. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCall } from '../emulator/index.js';
import {
  collect,
  errorOf,
  eventually,
  isText,
  setUp,
  textOf,
  tool,
  until,
} from './support/boundary.js';
import { STATES, enter } from './support/boundary-states.js';

const DONE = { value: undefined, done: true };

/** A turn with every kind of element. */
const RICH = {
  rules: [
    { when: { user: 'again' }, reply: 'Hello again.' },
    { when: { hasToolResult: true }, reply: 'The end.' },
    { reply: { thinking: 'hm', text: 'Wait.', ...toolCall('look', { a: 1 }) } },
  ],
  tools: [tool('look')],
};

const KINDS = {
  'the first element': () => true,
  'a phase of the model': ({ phase }) => phase === 'model_responding',
  'a thought': ({ sessionUpdate }) => sessionUpdate === 'agent_thought_chunk',
  'a chunk of text': isText,
  'a tool call': ({ sessionUpdate }) => sessionUpdate === 'tool_call',
  'the input of a call': ({ sessionUpdate, status }) =>
    sessionUpdate === 'tool_call_update' && status === 'in_progress',
  'a phase of the tool': ({ phase }) => phase === 'tool_executing',
  'the result of a call': ({ status }) => status === 'completed',
  'a usage update': ({ sessionUpdate }) => sessionUpdate === 'usage_update',
  'the text after the tool': (element) => isText(element) && element.content.text.includes('end'),
  'the last element': ({ phase }) => phase === 'idle',
};

for (const [kind, isIt] of Object.entries(KINDS)) {
  test(`FC-G4: break at ${kind} ends the run; the next send works`, async (t) => {
    const { session, emulator } = await setUp(t, RICH);
    const stream = session.send('hi');
    let found = false;
    for await (const element of stream) {
      found = isIt(element);
      if (found) break;
    }
    assert.ok(found);
    await emulator.idle();
    assert.equal(emulator.openStreams(), 0);
    assert.deepEqual(await stream.next(), DONE);
    assert.equal(textOf(await collect(session.send('again'))), 'Hello again.');
  });
}

test('FC-G4: a throw in the loop passes, and ends the run', async (t) => {
  const { session, emulator } = await setUp(t, { knobs: { stallAfter: 3 } });
  const mine = new Error('mine');
  const error = await errorOf(async () => {
    for await (const element of session.send('hi')) if (isText(element)) throw mine;
  });
  assert.equal(error, mine);
  await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
});

for (const state of Object.keys(STATES)) {
  test(`FC-G4: return() ${state}, while a next() is pending`, async (t) => {
    const { stream, session, emulator, elements, ended, calls } = await enter(t, state);
    const seen = elements.length;
    assert.deepEqual(await stream.return('bye'), { value: 'bye', done: true });
    await ended;
    assert.ok(elements.length <= seen + 1, 'only the pending next() may still get an element');
    const counts = [emulator.requests.length, calls.length];
    await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
    for (const { signal } of calls) await eventually(() => signal.aborted, 'the tool is told');
    assert.deepEqual(await stream.next(), DONE);
    assert.equal((await session.prompt('again')).text, 'Hello again.');
    assert.deepEqual([emulator.requests.length - 1, calls.length], counts);
  });

  test(`FC-G4: throw() ${state} rejects with the error when the run is over`, async (t) => {
    const { stream, session, emulator, ended } = await enter(t, state);
    const mine = new Error('mine');
    assert.equal(await errorOf(stream.throw(mine)), mine);
    await ended;
    await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
    assert.deepEqual(await stream.next(), DONE);
    assert.equal((await session.prompt('again')).text, 'Hello again.');
  });
}

test('return() and throw() before the first next: nothing ever starts', async (t) => {
  const { session, emulator } = await setUp(t);
  const returned = session.send('hi');
  assert.deepEqual(await returned.return(5), { value: 5, done: true });
  const thrown = session.send('hi');
  const mine = new Error('mine');
  assert.equal(await errorOf(thrown.throw(mine)), mine);
  for (const stream of [returned, thrown]) assert.deepEqual(await stream.next(), DONE);
  assert.equal(emulator.requests.length, 0);
  assert.equal((await session.prompt('hi')).text, 'Hello.');
});

test('return() at once after the first next(), which is answered', async (t) => {
  const { session, emulator } = await setUp(t, { knobs: { stallAfter: 3 } });
  const stream = session.send('hi');
  const first = stream.next();
  assert.deepEqual(await stream.return(1), { value: 1, done: true });
  const { done } = await first;
  assert.equal(typeof done, 'boolean');
  await eventually(() => emulator.openStreams() === 0, 'no stream stays open');
  emulator.setKnobs({});
  assert.equal((await session.prompt('hi')).text, 'Hello.');
});

test('return() twice, and after the end, is as good', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('hi');
  await stream.next();
  const both = await Promise.all([stream.return(1), stream.return(2)]);
  assert.deepEqual(both, [
    { value: 1, done: true },
    { value: 2, done: true },
  ]);
  assert.deepEqual(await stream.return(3), { value: 3, done: true });
  const ended = session.send('hi');
  await collect(ended);
  assert.deepEqual(await ended.return(4), { value: 4, done: true });
});

test('after a normal end nothing is cancelled', async (t) => {
  const { session, emulator } = await setUp(t);
  for await (const element of session.send('hi')) assert.ok(element);
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, false);
});

test('return() when the run could not start', async (t) => {
  const { session } = await setUp(t);
  const stream = session.send('');
  const [pending, returned] = await Promise.allSettled([stream.next(), stream.return()]);
  assert.deepEqual(returned.value, DONE);
  assert.equal(pending.reason?.code ?? 'E_INVALID_CONFIG', 'E_INVALID_CONFIG');
  assert.deepEqual(await stream.next(), DONE);
});

test('asyncDispose ends the run, where the platform has it', async (t) => {
  const { session, emulator } = await setUp(t, { knobs: { stallAfter: 3 } });
  const stream = session.send('hi');
  await until(stream, isText);
  await stream[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
  await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
});

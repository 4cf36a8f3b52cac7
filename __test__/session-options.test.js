/** Which conversation an agent goes on with: options of the configuration and of `startSession`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError, SessionError } from '../index.js';
import { assertRefused, errorOf, setUp } from './support/boundary.js';
import { DURABLE, conversationIn, storedAgents, temporaryFolder } from './support/sessions.js';

const ECHO = [{ reply: (_, { user }) => `You said: ${user}` }];

/** A stored conversation `c` of two turns, and a way to make further agents. */
async function conversation(t) {
  const { emulator, newAgent } = await storedAgents(t, DURABLE.sqlite(temporaryFolder(t)), {
    rules: ECHO,
  });
  const agent = newAgent();
  const session = await agent.startSession({ userId: 'ann', conversationId: 'c' });
  await session.prompt('one');
  await session.prompt('two');
  const [first, second] = (await session.getHistory()).filter(({ role }) => role === 'assistant');
  await agent.close();
  const sent = () => conversationIn(emulator.requests.at(-1));
  return { newAgent, sent, first: first.id, second: second.id };
}

test('sessionId: startSession without an id goes on with it', async (t) => {
  const { newAgent, sent } = await conversation(t);
  const agent = newAgent({ sessionId: 'c' });
  const session = await agent.startSession({ userId: 'ann' });
  assert.equal(session.id, 'c');
  await session.prompt('three');
  assert.equal(sent().length, 5);
  const other = await agent.startSession({ userId: 'ann', conversationId: 'd' });
  assert.equal(other.id, 'd');
});

test('continueRecentSession: the newest of the user, else a new one', async (t) => {
  const { newAgent } = await conversation(t);
  const agent = newAgent({ continueRecentSession: true });
  assert.equal((await agent.startSession({ userId: 'ann' })).id, 'c');
  const another = newAgent({ continueRecentSession: true });
  assert.notEqual((await another.startSession({ userId: 'bob' })).id, 'c');
});

test('an explicit sessionId wins over continueRecentSession', async (t) => {
  const { newAgent } = await conversation(t);
  const agent = newAgent({ sessionId: 'x', continueRecentSession: true });
  assert.equal((await agent.startSession({ userId: 'ann' })).id, 'x');
});

test('forkSession copies once for the agent; the source stays as it was', async (t) => {
  const { newAgent, sent } = await conversation(t);
  const agent = newAgent({ continueRecentSession: true, forkSession: true });
  const one = await agent.startSession({ userId: 'ann' });
  assert.notEqual(one.id, 'c');
  await one.prompt('three');
  assert.equal(sent().length, 5);
  const again = await agent.startSession({ userId: 'ann' });
  assert.equal(again.id, one.id);
  assert.equal((await agent.sessions.list()).length, 2);
  await (await newAgent().resumeSession('c')).prompt('three');
  assert.equal(sent().length, 5);
});

test('forkSession of what does not exist keeps the id', async (t) => {
  const { newAgent } = await conversation(t);
  const agent = newAgent({ sessionId: 'new', forkSession: true });
  assert.equal((await agent.startSession({ userId: 'ann' })).id, 'new');
});

test('resumeSessionAt goes on behind a message, for good', async (t) => {
  const { newAgent, sent, first } = await conversation(t);
  const agent = newAgent({ sessionId: 'c', resumeSessionAt: first });
  await (await agent.startSession({ userId: 'ann' })).prompt('other');
  const expected = ['user: one', 'assistant: You said: one', 'user: other'];
  assert.deepEqual(sent(), expected);
  await (await newAgent().resumeSession('c')).prompt('more');
  assert.deepEqual(sent(), [...expected, 'assistant: You said: other', 'user: more']);
});

test('resumeSessionAt is for the configured conversation, once', async (t) => {
  const { newAgent, sent, first } = await conversation(t);
  const agent = newAgent({ sessionId: 'c', resumeSessionAt: first, strictResume: true });
  const other = await agent.startSession({ userId: 'ann', conversationId: 'd' });
  await other.prompt('hello');
  const session = await agent.startSession({ userId: 'ann' });
  await session.prompt('other');
  assert.equal(sent().length, 3);
  await session.close();
  await (await agent.startSession({ userId: 'ann' })).prompt('more');
  assert.equal(sent().length, 5);
});

test('continue, fork and resumeAt together: the copy is cut, the source is not', async (t) => {
  const { newAgent, sent, first } = await conversation(t);
  const options = { continueRecentSession: true, forkSession: true, resumeSessionAt: first };
  await (await newAgent(options).startSession({ userId: 'ann' })).prompt('x');
  assert.equal(sent().length, 3);
  await (await newAgent().resumeSession('c')).prompt('x');
  assert.equal(sent().length, 5);
});

test('an unknown resumeAt keeps everything, or is refused when strict', async (t) => {
  const { newAgent, sent } = await conversation(t);
  const session = await newAgent().startSession({
    userId: 'ann',
    conversationId: 'c',
    resumeAt: 'nowhere',
  });
  await session.prompt('three');
  assert.equal(sent().length, 5);
  const strict = newAgent({ sessionId: 'c', resumeSessionAt: 'nowhere', strictResume: true });
  const error = await errorOf(strict.startSession({ userId: 'ann' }));
  assertRefused(error, SessionError, 'E_RESUME_POINT_NOT_FOUND', 'resumeAt');
});

test('persistSession false: a stored conversation is known, and nothing is added to it', async (t) => {
  const { newAgent, sent } = await conversation(t);
  const agent = newAgent({ sessionId: 'c', persistSession: false });
  const session = await agent.startSession({ userId: 'ann' });
  await session.prompt('three');
  await session.prompt('four');
  assert.equal(sent().length, 7);
  await (await newAgent().resumeSession('c')).prompt('three');
  assert.equal(sent().length, 5);
});

test('startSession with fork', async (t) => {
  const { newAgent, sent, first } = await conversation(t);
  const agent = newAgent();
  const fork = { from: 'c', upToMessageId: first };
  const session = await agent.startSession({ userId: 'ann', conversationId: 'copy', fork });
  assert.equal(session.id, 'copy');
  await session.prompt('x');
  assert.equal(sent().length, 3);
});

test('D21: a conversation of another user is not copied either', async (t) => {
  const { newAgent } = await conversation(t);
  const agent = newAgent();
  const calls = [
    () => agent.startSession({ userId: 'bob', fork: { from: 'c' } }),
    () => newAgent({ sessionId: 'c', forkSession: true }).startSession({ userId: 'bob' }),
  ];
  for (const call of calls) {
    assertRefused(await errorOf(call), SessionError, 'E_SESSION_OWNER');
  }
  assert.equal((await agent.sessions.list()).length, 1);
});

test('without a store these options are refused, with what is missing', async (t) => {
  const { agent } = await setUp(t);
  for (const options of [
    { continueRecent: true },
    { fork: { from: 'c' } },
    { conversationId: 'x', resumeAt: 'm' },
  ]) {
    const error = await errorOf(agent.startSession({ userId: 'ann', ...options }));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'session.store');
  }
  assert.deepEqual([...(await agent.sessions.list())], []);
  assert.equal(await agent.sessions.get('x'), null);
  await agent.sessions.delete('x');
  assert.equal((await errorOf(agent.sessions.fork('x'))).code, 'E_RESOURCE');
});

test('wrong options are refused with the field', async (t) => {
  const { newAgent } = await conversation(t);
  const agent = newAgent();
  const wrong = [
    [{ title: 7 }, 'title'],
    [{ title: 'x'.repeat(5_000) }, 'title'],
    [{ metadata: [] }, 'metadata'],
    [{ metadata: { f() {} } }, 'metadata'],
    [{ metadata: { x: 'x'.repeat(300_000) } }, 'metadata'],
    [{ fork: { upToMessageIndex: 1 } }, 'from'],
    [{ fork: { from: 'c', upToMessageIndex: 1, upToMessageId: 'x' } }, 'exclude'],
    [{ resumeAt: 7 }, 'resumeAt'],
    [{ continueRecent: 'yes' }, 'continueRecent'],
    [{ nonsense: 1 }, 'nonsense'],
  ];
  for (const [options, field] of wrong) {
    const error = await errorOf(agent.startSession({ userId: 'ann', ...options }));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', field);
  }
  for (const options of [{ limit: -1 }, { cursor: 'x' }, { userId: '' }, { page: 2 }]) {
    const error = await errorOf(agent.sessions.list(options));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', Object.keys(options)[0]);
  }
});

/** Stored conversations: resuming them, and whose they are. */
import assert from 'node:assert/strict';

import { InvalidConfigError, ResourceError, SessionError } from '../index.js';
import {
  ENTRY,
  assertEnd,
  assertRefused,
  collect,
  configFor,
  deferred,
  errorOf,
  runClean,
  tool,
} from './support/boundary.js';
import { conversationIn, stored, storedAgents } from './support/sessions.js';

const ECHO = [{ reply: (_, { user }) => `You said: ${user}` }];

stored('a conversation goes on in another agent', async (t, settings) => {
  const { emulator, newAgent } = await storedAgents(t, settings, { rules: ECHO });
  const first = newAgent();
  const session = await first.startSession({ userId: 'ann' });
  await session.prompt('one');
  const state = await session.getState();
  await first.close();
  for (const reference of [session.id, state]) {
    const second = newAgent();
    const resumed = await second.resumeSession(reference);
    assert.deepEqual([resumed.id, resumed.userId], [session.id, 'ann']);
    await resumed.prompt('two');
    await second.close();
  }
  assert.deepEqual(conversationIn(emulator.requests.at(-1)), [
    'user: one',
    'assistant: You said: one',
    'user: two',
    'assistant: You said: two',
    'user: two',
  ]);
});

stored('two agents take turns, each sees what the other said', async (t, settings) => {
  const { emulator, newAgent } = await storedAgents(t, settings, { rules: ECHO });
  const one = await newAgent().startSession({ userId: 'ann', conversationId: 'c' });
  const other = await newAgent().startSession({ userId: 'ann', conversationId: 'c' });
  for (const [session, text] of [
    [one, '1'],
    [other, '2'],
    [one, '3'],
    [other, '4'],
  ]) {
    await session.prompt(text);
  }
  assert.equal(emulator.requests.at(-1).body.messages.length, 7);
});

stored(
  'what another agent says first is known, though the session was new here',
  async (t, settings) => {
    const { emulator, newAgent } = await storedAgents(t, settings, { rules: ECHO });
    const one = await newAgent().startSession({ userId: 'ann' });
    const other = await newAgent().startSession({ userId: 'ann', conversationId: one.id });
    await other.prompt('first');
    await one.prompt('second');
    assert.equal(emulator.requests.at(-1).body.messages.length, 3);
  },
);

stored('D21: a conversation of another user is refused, and nothing told', async (t, settings) => {
  const { newAgent } = await storedAgents(t, settings);
  await newAgent().prompt('hi', { userId: 'ann', conversationId: 'c' });
  const agent = newAgent();
  const calls = [
    () => agent.startSession({ userId: 'bob', conversationId: 'c' }),
    () => agent.resumeSession('c', { userId: 'bob' }),
    () => agent.prompt('hi', { userId: 'bob', conversationId: 'c' }),
  ];
  for (const call of calls) {
    const error = await errorOf(call);
    assertRefused(error, SessionError, 'E_SESSION_OWNER');
    assert.doesNotMatch(error.message, /ann/);
  }
  const options = { userId: 'bob', conversationId: 'c', allowUserChange: true };
  const session = await agent.startSession(options);
  await session.prompt('mine now');
  assert.equal((await agent.sessions.get('c')).userId, 'bob');
});

stored('D21: another process is refused too, and the owner is not', async (t, settings) => {
  const { emulator, newAgent } = await storedAgents(t, settings);
  await newAgent().prompt('hi', { userId: 'ann', conversationId: 'c' });
  const config = { ...configFor(emulator), session: settings };
  const out = await runClean(`
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const agent = createAgent(${JSON.stringify(config)});
    const codes = [];
    for (const userId of ['bob', 'ann']) {
      const open = () => agent.startSession({ userId, conversationId: 'c' });
      codes.push(await open().then(({ userId }) => userId, ({ code }) => code));
    }
    codes.push((await agent.resumeSession('c')).userId);
    console.log(codes.join(' '));
    await agent.close();
  `);
  assert.equal(out, 'E_SESSION_OWNER ann ann');
});

stored('resumeSession of what does not exist is a ResourceError', async (t, settings) => {
  const { newAgent } = await storedAgents(t, settings);
  const error = await errorOf(newAgent().resumeSession('nowhere'));
  assertRefused(error, ResourceError, 'E_RESOURCE', 'no stored session');
  for (const id of ['a\u0000b', 'x'.repeat(513), '\n']) {
    const refused = await errorOf(newAgent().resumeSession(id));
    assertRefused(refused, InvalidConfigError, 'E_INVALID_CONFIG', '512 bytes');
  }
});

stored(
  'FC-C7: ids with separators, dots, case and Unicode variants do not collide',
  async (t, settings) => {
    const { newAgent } = await storedAgents(t, settings, { rules: ECHO });
    const ids = [
      '../../x',
      'a/b',
      'a\\b',
      '.',
      '..',
      'CASE',
      'case',
      'caf\u00e9',
      'cafe\u0301',
      'é'.repeat(256),
    ];
    const first = newAgent();
    for (const conversationId of ids)
      await first.prompt(conversationId, { userId: 'u', conversationId });
    await first.close();
    const second = newAgent();
    for (const id of ids) {
      const [{ firstPrompt }] = [await second.sessions.get(id)];
      assert.equal(firstPrompt, id.slice(0, 200));
    }
    assert.equal((await second.sessions.list()).length, ids.length);
  },
);

stored('title and metadata are kept; the newest session is first', async (t, settings) => {
  const { newAgent } = await storedAgents(t, settings);
  const agent = newAgent();
  const about = { title: 'Lunch', metadata: { table: 4 } };
  const session = await agent.startSession({ userId: 'ann', ...about });
  await session.prompt('hi');
  await agent.prompt('later', { userId: 'bob', conversationId: 'b' });
  const [newest, oldest] = await newAgent().sessions.list();
  assert.equal(newest.conversationId, 'b');
  const { createdAt, updatedAt, ...rest } = oldest;
  assert.ok(createdAt > 1e12 && updatedAt >= createdAt);
  assert.deepEqual(rest, {
    conversationId: session.id,
    userId: 'ann',
    title: 'Lunch',
    metadata: { table: 4 },
    status: 'idle',
    firstPrompt: 'hi',
  });
  const ofAnn = await agent.sessions.list({ userId: 'ann' });
  assert.deepEqual(
    ofAnn.map(({ userId }) => userId),
    ['ann'],
  );
});

stored('lists come in pages without gaps or repeats', async (t, settings) => {
  const { newAgent } = await storedAgents(t, settings);
  const agent = newAgent();
  const ids = Array.from({ length: 7 }, (_, at) => `s${at}`);
  for (const conversationId of ids) await agent.prompt('hi', { userId: 'u', conversationId });
  const found = [];
  let cursor;
  do {
    const page = await agent.sessions.list({ limit: 3, cursor });
    found.push(...page.map(({ conversationId }) => conversationId));
    cursor = page.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(found, ids.reverse());
});

stored('rename, tag and delete', async (t, settings) => {
  const { newAgent } = await storedAgents(t, settings);
  const agent = newAgent();
  await agent.prompt('hi', { userId: 'u', conversationId: 'c' });
  await agent.sessions.rename('c', 'New');
  await agent.sessions.tag('c', 'red');
  const { title, tag } = await newAgent().sessions.get('c');
  assert.deepEqual([title, tag], ['New', 'red']);
  await agent.sessions.tag('c', null);
  assert.equal('tag' in (await agent.sessions.get('c')), false);
  await agent.sessions.delete('c');
  await agent.sessions.delete('c');
  assert.equal(await newAgent().sessions.get('c'), null);
  assertRefused(await errorOf(agent.resumeSession('c')), ResourceError, 'E_RESOURCE');
  for (const call of ['rename', 'tag']) {
    const error = await errorOf(agent.sessions[call]('c', 'x'));
    assertRefused(error, ResourceError, 'E_RESOURCE', `sessions.${call}`);
  }
});

stored('a fork has its own future; an index keeps that many messages', async (t, settings) => {
  const { emulator, newAgent } = await storedAgents(t, settings, { rules: ECHO });
  const agent = newAgent();
  const source = await agent.startSession({ userId: 'ann', title: 'T', conversationId: 'source' });
  await source.prompt('one');
  await source.prompt('two');
  const whole = await agent.sessions.fork('source');
  const part = await agent.sessions.fork('source', { upToMessageIndex: 2, conversationId: 'part' });
  assert.equal(part, 'part');
  await (await agent.resumeSession(whole)).prompt('three');
  assert.equal(conversationIn(emulator.requests.at(-1)).length, 5);
  await (await agent.resumeSession(part)).prompt('three');
  assert.deepEqual(conversationIn(emulator.requests.at(-1)), [
    'user: one',
    'assistant: You said: one',
    'user: three',
  ]);
  await source.prompt('four');
  assert.equal(conversationIn(emulator.requests.at(-1)).length, 5);
  const { userId, title, parentConversationId } = await agent.sessions.get('part');
  assert.deepEqual([userId, title, parentConversationId], ['ann', 'T', 'source']);
  const taken = await errorOf(agent.sessions.fork('source', { conversationId: 'part' }));
  assert.equal(taken.code, 'E_SESSION_EXISTS');
  const far = await errorOf(agent.sessions.fork('source', { upToMessageIndex: 99 }));
  assertRefused(far, InvalidConfigError, 'E_INVALID_CONFIG', 'upToMessageIndex', '0..=6');
});

stored('continueRecent and resumeAt', async (t, settings) => {
  const { emulator, newAgent } = await storedAgents(t, settings, { rules: ECHO });
  const first = newAgent();
  const session = await first.startSession({ userId: 'ann' });
  await session.prompt('one');
  await session.prompt('two');
  await first.close();
  const second = newAgent();
  const history = emulator.requests.at(-1).body.messages;
  assert.equal(history.length, 3);
  const recent = await second.startSession({ userId: 'ann', continueRecent: true });
  assert.equal(recent.id, session.id);
  await recent.prompt('three');
  assert.equal(emulator.requests.at(-1).body.messages.length, 5);
  const other = await second.startSession({ userId: 'bob', continueRecent: true });
  assert.notEqual(other.id, session.id);
});

stored('a call that was running when its process ended is not run again', async (t, settings) => {
  const runs = [];
  const running = deferred();
  const { emulator, newAgent } = await storedAgents(t, settings, {
    rules: [
      { when: { user: 'go' }, times: 1, reply: { toolCalls: [{ name: 'pay', input: {} }] } },
      { reply: 'Done.' },
    ],
  });
  const pay = () => {
    runs.push('pay');
    running.resolve();
    return new Promise(() => {});
  };
  const tools = [tool('pay', pay)];
  const agent = newAgent({ tools });
  const session = await agent.startSession({ userId: 'ann', conversationId: 'c' });
  const ended = collect(session.send('go'));
  await running.promise;
  await session.abort();
  await ended;
  await agent.close();
  const again = newAgent({ tools });
  const elements = await collect((await again.resumeSession('c')).send('go on'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.deepEqual(runs, ['pay']);
  assert.match(JSON.stringify(emulator.requests.at(-1).body.messages), /interrupted while it ran/);
});

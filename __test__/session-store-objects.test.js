/** Session stores that programs bring: those of the Claude Agent SDK, drivers, whole transcripts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  CloudBaseSessionStore,
  InMemoryDriver,
  InvalidConfigError,
  createAgent,
  openSessionStore,
} from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, offline, tool } from './support/boundary.js';
import { conversationIn, storedAgents } from './support/sessions.js';

/** The least store: a class with its methods on the prototype. */
class ListStore {
  #lists = new Map();

  async append({ projectKey, sessionId, subpath }, entries) {
    const id = JSON.stringify([projectKey, sessionId, subpath]);
    this.#lists.set(id, [...(this.#lists.get(id) ?? []), ...entries]);
  }

  load({ projectKey, sessionId, subpath }) {
    return this.#lists.get(JSON.stringify([projectKey, sessionId, subpath])) ?? null;
  }
}

/** A store that keeps whole transcripts, with the methods of the older file store. */
class WholeStore {
  saved = new Map();

  async save(id, messages, metadata) {
    this.saved.set(id, structuredClone({ metadata, messages }));
  }

  async load(id) {
    return this.saved.get(id) ?? null;
  }
}

/** A driver with the methods that every driver must have, and no more. */
function leastDriver() {
  const driver = new InMemoryDriver();
  const names = ['appendEntries', 'loadEntries', 'loadEntriesByMessageIds', 'registerSession'];
  names.push('listSessions', 'deleteSession', 'appendSessionMessage');
  names.push('querySessionMessages', 'deleteSessionMessages');
  return Object.fromEntries(names.map((name) => [name, (...args) => driver[name](...args)]));
}

const STORES = {
  'a class with append and load': () => new ListStore(),
  'a whole-transcript store': () => new WholeStore(),
  CloudBaseSessionStore: () => new CloudBaseSessionStore({ driver: new InMemoryDriver() }),
  'a driver without optional methods': () =>
    new CloudBaseSessionStore({ driver: leastDriver(), projectKey: 'p' }),
  openSessionStore: () => openSessionStore({ database: 'memory' }),
};

for (const [name, newStore] of Object.entries(STORES)) {
  test(`${name}: resume, history and clear`, async (t) => {
    const rules = [
      {
        when: { user: 'pay', hasToolResult: false },
        reply: { toolCalls: [{ name: 'pay', input: {} }] },
      },
      { reply: (_, { user }) => `You said: ${user}` },
    ];
    const store = newStore();
    const options = { rules, tools: [tool('pay', () => 'paid')] };
    const { emulator, newAgent } = await storedAgents(t, { store }, options);
    const first = newAgent();
    const session = await first.startSession({ userId: 'ann' });
    await session.prompt('pay');
    await first.close();
    const second = newAgent();
    const resumed = await second.resumeSession(session.id, { userId: 'ann' });
    assert.equal(resumed.userId, 'ann');
    await resumed.prompt('two');
    assert.deepEqual(conversationIn(emulator.requests.at(-1)), [
      'user: pay',
      'assistant: tool_use',
      'user: tool_result',
      'assistant: You said: pay',
      'user: two',
    ]);
    const history = await resumed.getHistory();
    assert.deepEqual(
      history.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)]),
      [
        ['user', 'text'],
        ['assistant', 'tool_call', 'tool_result', 'text'],
        ['user', 'text'],
        ['assistant', 'text'],
      ],
    );
    const pages = [];
    let cursor;
    do {
      const page = await resumed.getHistory({ limit: 1, cursor });
      pages.unshift(...page);
      cursor = page.nextCursor;
    } while (cursor !== null);
    assert.deepEqual(pages, [...history]);
    await resumed.clearHistory();
    assert.deepEqual([...(await resumed.getHistory())], []);
    await resumed.prompt('three');
    assert.equal(emulator.requests.at(-1).body.messages.length, 7);
    assert.equal((await resumed.getHistory()).length, 2);
  });

  test(`${name}: two agents of one process do not run a session at once`, async (t) => {
    const rules = [{ reply: { text: ['a', 'b', 'c'], knobs: { chunkDelayMs: 30 } } }];
    const { newAgent } = await storedAgents(t, { store: newStore() }, { rules });
    const options = { userId: 'ann', conversationId: 'c' };
    const one = await newAgent().startSession(options);
    const other = await newAgent().startSession(options);
    const stream = one.send('hi');
    await stream.next();
    const error = await errorOf(other.send('hi').next());
    assert.deepEqual([error.code, error.retryable], ['E_SESSION_BUSY', true]);
    await collect(stream);
    await other.prompt('hi');
  });
}

test('a store without its methods is refused at once, with their names', async () => {
  const wrong = [{}, { append() {} }, { load() {} }, 7, 'x', [], { append: 1, load: 2 }];
  for (const store of wrong) {
    for (const config of [{ session: { store } }, { sessionStore: store }]) {
      const error = await errorOf(() => createAgent(offline(config)));
      assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', /[sS]tore/);
    }
  }
  const store = new ListStore();
  for (const config of [
    { session: { store }, sessionStore: store },
    { session: { store, database: 'memory' } },
  ]) {
    assertRefused(
      await errorOf(() => createAgent(offline(config))),
      InvalidConfigError,
      'E_INVALID_CONFIG',
    );
  }
});

const FAULTS = {
  throws: () => {
    throw new Error('disk on fire');
  },
  'rejects with nothing': () => Promise.reject(),
  'gives a number': () => 7,
  'gives a list of garbage': () => [1, null, 'x'],
  'gives an object': () => ({}),
};

for (const [fault, load] of Object.entries(FAULTS)) {
  test(`a store whose load ${fault} ends the run before anything is sent`, async (t) => {
    const store = { append: async () => {}, load };
    const { emulator, newAgent } = await storedAgents(t, { store });
    const error = await errorOf(newAgent().prompt('hi', { conversationId: 'c' }));
    assert.equal(error.code, 'E_STORE');
    assert.match(error.message, /load/);
    assert.equal(emulator.requests.length, 0);
  });
}

test('D24: no tool starts while its call is not stored; the entries are offered again', async (t) => {
  let broken = false;
  const kept = new ListStore();
  const store = {
    append: async (key, entries) => {
      if (broken) throw new Error('disk full');
      await kept.append(key, entries);
    },
    load: (key) => kept.load(key),
  };
  const ran = [];
  const rules = [
    {
      when: { user: 'pay', hasToolResult: false },
      times: 1,
      reply: { toolCalls: [{ name: 'pay', input: {} }] },
    },
    { reply: 'Done.' },
  ];
  const tools = [tool('pay', () => ran.push('pay'))];
  const session = { store, storeTimeoutMs: 400 };
  const { emulator, newAgent } = await storedAgents(t, session, { rules, tools });
  const agent = newAgent();
  const conversation = await agent.startSession({ userId: 'ann', conversationId: 'c' });
  await conversation.prompt('hello');
  broken = true;
  const elements = await collect(conversation.send('pay'));
  const error = elements.find(({ level }) => level === 'error');
  assert.equal(error.code, 'E_STORE_UNAVAILABLE');
  assert.equal(error.details.unsaved.length, 2);
  assert.deepEqual(ran, []);
  assert.equal(elements.at(-1).stopReason, 'error');
  assert.equal((await errorOf(conversation.flush())).code, 'E_STORE_UNAVAILABLE');
  assert.equal((await errorOf(conversation.prompt('more'))).code, 'E_STORE_UNAVAILABLE');
  broken = false;
  await conversation.prompt('again');
  assert.deepEqual(ran, []);
  const stored = kept.load({ projectKey: 'test-env', sessionId: 'c' });
  const uuids = stored.map(({ uuid }) => uuid);
  assert.equal(new Set(uuids).size, uuids.length);
  for (const uuid of error.details.unsaved) assert.ok(uuids.includes(uuid));
  assert.match(JSON.stringify(emulator.requests.at(-1).body.messages), /not started/);
});

test("onStoreFailure 'continue': the run goes on, and says what is not stored", async (t) => {
  const store = {
    append: async () => {
      throw new Error('disk full');
    },
    load: () => null,
  };
  const session = { store, storeTimeoutMs: 200, onStoreFailure: 'continue' };
  const { newAgent } = await storedAgents(t, session);
  const conversation = await newAgent().startSession({ userId: 'ann' });
  const elements = await collect(conversation.send('hi'));
  assert.ok(elements.some(({ code }) => code === 'E_STORE_UNAVAILABLE'));
  assert.equal(elements.at(-1).stopReason, 'end_turn');
});

test('FC-C6: a store that stores and reports a failure has each entry once', async (t) => {
  const kept = new ListStore();
  let calls = 0;
  const store = {
    append: async (key, entries) => {
      await kept.append(key, entries);
      if (calls++ % 2 === 0) throw new Error('timed out');
    },
    load: (key) => kept.load(key),
  };
  const { newAgent } = await storedAgents(t, { store });
  const conversation = await newAgent().startSession({ userId: 'ann', conversationId: 'c' });
  await conversation.prompt('one');
  await conversation.prompt('two');
  const stored = kept.load({ projectKey: 'test-env', sessionId: 'c' });
  assert.deepEqual(
    stored.map(({ type }) => type),
    ['user', 'assistant', 'user', 'assistant'],
  );
});

test('a store whose registerSession never settles or fails keeps the conversation all the same', async (t) => {
  for (const registerSession of [
    () => new Promise(() => {}),
    () => Promise.reject(new Error('no')),
  ]) {
    const kept = new ListStore();
    const store = { append: kept.append.bind(kept), load: kept.load.bind(kept), registerSession };
    const { newAgent } = await storedAgents(t, { store, storeTimeoutMs: 2_000 });
    const conversation = await newAgent().startSession({ userId: 'ann', conversationId: 'c' });
    assertEnd(await collect(conversation.send('hi')), { stopReason: 'end_turn' });
    assert.equal(kept.load({ projectKey: 'test-env', sessionId: 'c' }).length, 2);
  }
});

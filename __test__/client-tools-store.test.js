/** `toolStore`: objects of programs that keep calls, good and bad ones. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCall } from '../emulator/index.js';
import { InMemoryClientToolStore, InvalidConfigError, createAgent } from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, offline, setUp } from './support/boundary.js';
import {
  NOT_PENDING,
  RESOLVED,
  answer,
  assertError,
  callsThenRepeats,
  clientTool,
  openIn,
} from './support/client-tools.js';
import { errorsOf, textOf } from './support/gateway-elements.js';
import { resultsIn } from './support/gateway.js';

/** A store of the program, as people write them. */
class MapStore {
  records = new Map();
  calls = [];
  /** What was put as `result`. */
  results = [];

  async put(entry) {
    this.calls.push('put');
    this.results.push(entry.result);
    this.records.set(entry.toolUseId, JSON.stringify(entry));
    return entry;
  }

  get({ toolUseId }) {
    return this.records.has(toolUseId) ? JSON.parse(this.records.get(toolUseId)) : null;
  }

  async delete({ toolUseId }) {
    this.calls.push('delete');
    this.records.delete(toolUseId);
  }
}

/** A session store with the two methods that it must have. */
function sessionStore(entries = []) {
  const transcripts = new Map([['c', entries]]);
  return {
    async append({ sessionId }, added) {
      transcripts.set(sessionId, [...(transcripts.get(sessionId) ?? []), ...added]);
    },
    load: async ({ sessionId }) => structuredClone(transcripts.get(sessionId) ?? null),
  };
}

const CONVERSATION = { userId: 'ann', conversationId: 'c' };
const HURRY = { storeTimeoutMs: 400 };

/** An agent with a tool store whose model calls each tool once, and its session. */
async function pausing(t, toolStore, options = {}) {
  const store = options.session?.store ?? sessionStore();
  const { agent, emulator } = await setUp(t, {
    rules: callsThenRepeats('pick'),
    tools: [clientTool('pick')],
    toolStore,
    ...options,
    session: { store, ...HURRY, ...options.session },
  });
  const session = await agent.startSession(CONVERSATION);
  return {
    agent,
    emulator,
    session,
    read: (input) => collect(session.send(input)),
    results: () => resultsIn(emulator.requests.at(-1).body.messages.at(-1)),
  };
}

test('a record has the documented fields and goes when it is answered', async (t) => {
  const store = new MapStore();
  const { session, read } = await pausing(t, store);
  await read('go');
  const { conversationId, toolUseId, toolName, toolInput, createdAt, result } = store.get({
    toolUseId: 'toolu_1',
  });
  assert.deepEqual(
    { conversationId, toolUseId, toolName, toolInput, result },
    {
      conversationId: 'c',
      toolUseId: 'toolu_1',
      toolName: 'pick',
      toolInput: { city: 'pick' },
      result: undefined,
    },
  );
  assert.ok(Math.abs(Date.now() - createdAt) < 60_000);
  assertEnd(await answer(session, 'toolu_1', { a: 1 }), { stopReason: 'end_turn' });
  assert.deepEqual(store.results, [undefined, { output: { a: 1 }, isError: false }]);
  assert.equal(store.records.size, 0);
  assert.deepEqual(store.calls, ['put', 'put', 'delete']);
});

test('InMemoryClientToolStore keeps calls over agents of a process', async (t) => {
  const toolStore = new InMemoryClientToolStore();
  const store = sessionStore();
  const first = await pausing(t, toolStore, { session: { store } });
  await first.read('go');
  await first.agent.close();
  const second = await pausing(t, toolStore, { session: { store } });
  const [record] = (await second.session.getHistory()).slice(-1);
  assert.equal(record.parts[0].status, 'awaiting_approval');
  assertEnd(await answer(second.session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  assertError(await answer(second.session, 'toolu_1', 'y'), 'E_ALREADY_RESOLVED', RESOLVED);
});

test('InMemoryClientToolStore is a store of its own right', async () => {
  const store = new InMemoryClientToolStore();
  const key = { conversationId: 'c', toolUseId: 't' };
  assert.equal(await store.get(key), null);
  const entry = { ...key, toolName: 'pick', toolInput: { a: 1 }, createdAt: 5 };
  await store.put(entry);
  entry.toolInput.a = 2;
  assert.equal((await store.get(key)).toolInput.a, 1);
  assert.equal(await store.scanRecent({ conversationId: 'c', toolName: 'pick' }), null);
  const result = { output: 'x', isError: false };
  await store.put({ ...entry, result });
  await store.put({ ...entry, toolUseId: 'u', createdAt: 4, result });
  const recent = await store.scanRecent({ conversationId: 'c', toolName: 'pick' });
  assert.equal(recent.toolUseId, 't');
  assert.equal(await store.get({ ...key, conversationId: 'd' }), null);
  await store.delete(key);
  assert.equal(await store.get(key), null);
  for (const bad of [
    undefined,
    {},
    { conversationId: 'c' },
    { conversationId: 'c', toolUseId: '' },
  ]) {
    await assert.rejects(store.get(bad), InvalidConfigError);
  }
});

test('calls of one process are known to its other session objects without a store', async (t) => {
  const store = sessionStore();
  const first = await pausing(t, undefined, { session: { store } });
  const elements = await first.read('go');
  const hints = elements.filter(({ message }) => message?.includes('config.toolStore'));
  assert.deepEqual(
    hints.map(({ level }) => level),
    ['info'],
  );
  const second = await pausing(t, undefined, { session: { store } });
  assertEnd(await answer(second.session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  const again = await first.read('go');
  assert.ok(!again.some(({ message }) => message?.includes('config.toolStore')), 'it is said once');
});

const BROKEN = {
  throws: () => {
    throw new Error('the disk is full');
  },
  rejects: () => Promise.reject(new Error('the disk is full')),
  hangs: () => new Promise(() => {}),
};
for (const [kind, broken] of Object.entries(BROKEN)) {
  test(`a store whose put ${kind} ends the run, and nothing is lost`, async (t) => {
    const store = new MapStore();
    let isBroken = true;
    const toolStore = {
      put: (entry) => (isBroken ? broken() : store.put(entry)),
      get: (key) => store.get(key),
      delete: (key) => store.delete(key),
    };
    const { session, read, results } = await pausing(t, toolStore);
    const elements = await read('go');
    assertError(elements, 'E_STORE_UNAVAILABLE');
    assert.deepEqual(openIn(elements), []);
    assert.match(elements.find(({ status }) => status === 'failed').result, /not started/);
    isBroken = false;
    assertError(await answer(session, 'toolu_1', 'x'), 'E_RESOURCE', NOT_PENDING);
    assertEnd(await read('again'), { stopReason: 'end_turn' });
    assert.match(results()[0][1], /not started/);
  });

  test(`a store whose get ${kind} fails the answer, which can be given again`, async (t) => {
    const store = new MapStore();
    let isBroken = false;
    const toolStore = {
      put: (entry) => store.put(entry),
      get: (key) => (isBroken ? broken() : store.get(key)),
      delete: (key) => store.delete(key),
    };
    const { session, read } = await pausing(t, toolStore);
    await read('go');
    isBroken = true;
    assertError(await answer(session, 'toolu_1', 'x'), 'E_STORE_UNAVAILABLE');
    assertError(await read('other'), 'E_STORE_UNAVAILABLE');
    const parts = (await session.getHistory()).flatMap((record) => record.parts);
    assert.deepEqual(
      parts.map(({ type }) => type),
      ['text', 'tool_call'],
      'it stays readable',
    );
    isBroken = false;
    assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  });

  test(`a store whose delete ${kind} does not hold up the turn`, async (t) => {
    const store = new MapStore();
    let isBroken = true;
    const toolStore = {
      put: (entry) => store.put(entry),
      get: (key) => store.get(key),
      delete: (key) => (isBroken ? broken() : store.delete(key)),
    };
    const { session, read } = await pausing(t, toolStore);
    await read('go');
    assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
    assertError(await answer(session, 'toolu_1', 'y'), 'E_ALREADY_RESOLVED', RESOLVED);
    assert.equal(store.records.size, 1);
    isBroken = false;
    await read('again');
    assert.equal(store.records.has('toolu_1'), false);
  });
}

const LIES = {
  'a number': () => 5,
  'a text': () => 'toolu_1',
  'a list': () => [],
  'a record of another project': (entry) => ({ ...entry, oak: { ...entry.oak, project: 'other' } }),
  'a record without a version': (entry) => ({
    ...entry,
    oak: { ...entry.oak, version: undefined },
  }),
};
for (const [what, lie] of Object.entries(LIES)) {
  test(`a store that gives ${what} is not believed`, async (t) => {
    const store = new MapStore();
    let lies = false;
    const toolStore = {
      put: (entry) => store.put(entry),
      get: (key) => (lies ? lie(store.get(key)) : store.get(key)),
      delete: (key) => store.delete(key),
    };
    const { session, read } = await pausing(t, toolStore);
    await read('go');
    lies = true;
    const elements = await answer(session, 'toolu_1', 'x');
    assertError(elements, 'E_STORE_UNAVAILABLE');
    assert.match(errorsOf(elements)[0].message, /config\.toolStore\.get/);
    lies = false;
    assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  });
}

test('a store that forgets loses the call, which the next message answers', async (t) => {
  const { session, read, results } = await pausing(t, { put() {}, get() {}, delete() {} });
  await read('go');
  assertError(await answer(session, 'toolu_1', 'x'), 'E_RESOURCE', NOT_PENDING);
  assertEnd(await read('again'), { stopReason: 'end_turn' });
  assert.match(results()[0][1], /never delivered/);
});

test('a session whose calls cannot be removed is deleted; the failure is told', async (t) => {
  const store = new MapStore();
  const toolStore = {
    put: (entry) => store.put(entry),
    get: (key) => store.get(key),
    delete: () => new Promise(() => {}),
  };
  const sessions = { ...sessionStore(), delete: async () => {} };
  const { agent, read } = await pausing(t, toolStore, { session: { store: sessions } });
  await read('go');
  await assert.rejects(agent.sessions.delete('c'), { code: 'E_STORE' });
});

test('a conversation that is only read leaves its open calls to others', async (t) => {
  const [toolStore, store] = [new MapStore(), sessionStore()];
  const { session, read } = await pausing(t, toolStore, { session: { store } });
  await read('go');
  const reader = await pausing(t, toolStore, {
    session: { store },
    persistSession: false,
    rules: [{ reply: 'Fine.' }],
  });
  assertEnd(await reader.read('other'), { stopReason: 'end_turn' });
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

test('what put and delete give does not matter', async (t) => {
  const store = new MapStore();
  const cycle = {};
  cycle.self = cycle;
  const toolStore = {
    put: async (entry) => (await store.put(entry), cycle),
    get: (key) => store.get(key),
    delete: async (key) => (await store.delete(key), 5n),
  };
  const { session, read } = await pausing(t, toolStore);
  await read('go');
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

test('a store of a wrong shape is refused', async () => {
  const refused = async (toolStore, ...words) => {
    const error = await errorOf(() => createAgent(offline({ toolStore })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.toolStore', ...words);
  };
  for (const store of [5, 'x', true, [], () => {}]) await refused(store);
  await refused({}, 'put');
  await refused({ put() {}, get() {} }, 'delete');
  await refused({ put() {}, get: 5, delete() {} }, 'get');
  createAgent(offline({ toolStore: null }));
  createAgent(offline({ toolStore: new MapStore() }));
});

/** What an older kernel wrote: a call, and results that only say that it waits. */
function olderTranscript(marker, asBlocks) {
  const text = JSON.stringify({ [marker]: true, toolUseId: 't1', toolName: 'pick' });
  const content = asBlocks ? [{ type: 'text', text }] : text;
  const entry = (uuid, parentUuid, type, message) => ({
    type,
    uuid,
    parentUuid,
    sessionId: 'c',
    isSidechain: false,
    timestamp: '2026-01-01T00:00:00.000Z',
    message,
  });
  const call = { type: 'tool_use', id: 't1', name: 'mcp__custom__pick', input: { city: 'Rome' } };
  const result = { type: 'tool_result', tool_use_id: 't1', content, is_error: true };
  const said = { type: 'text', text: 'I wait for you.' };
  return [
    entry('u1', null, 'user', { role: 'user', content: 'go' }),
    entry('a1', 'u1', 'assistant', { role: 'assistant', id: 'm1', content: [call] }),
    entry('r1', 'a1', 'user', { role: 'user', content: [result] }),
    entry('a2', 'r1', 'assistant', { role: 'assistant', id: 'm2', content: [said] }),
  ];
}

for (const marker of ['__OAK_CLIENT_TOOL__', '__OAK_ASK_USER__', '__OAK_INTERRUPT__']) {
  for (const asBlocks of [false, true]) {
    test(`a transcript of the older kernel goes on: ${marker}, ${asBlocks ? 'blocks' : 'text'}`, async (t) => {
      const toolStore = new MapStore();
      await toolStore.put({
        conversationId: 'c',
        toolUseId: 't1',
        toolName: 'pick',
        toolInput: { city: 'Rome' },
        createdAt: 5,
      });
      const { session, emulator } = await pausing(t, toolStore, {
        session: { store: sessionStore(olderTranscript(marker, asBlocks)) },
        rules: [{ reply: 'Thanks.' }],
      });
      const shown = async () => (await session.getHistory()).flatMap((record) => record.parts);
      const [, waiting] = await shown();
      assert.deepEqual([waiting.toolName, waiting.status], ['pick', 'awaiting_approval']);
      const elements = await answer(session, 't1', { sky: 'blue' });
      assertEnd(elements, { stopReason: 'end_turn' });
      const { messages } = emulator.requests.at(-1).body;
      assert.deepEqual(
        messages.map(({ role }) => role),
        ['user', 'assistant', 'user', 'assistant', 'user'],
      );
      assert.deepEqual(resultsIn(messages[2]), [['t1', '{"sky":"blue"}', false]]);
      assert.match(messages[4].content.at(-1).text, /has its result now/);
      assert.equal(toolStore.records.size, 0);
      const parts = await shown();
      assert.deepEqual(
        parts.map(({ type, status }) => [type, status]),
        [
          ['text', undefined],
          ['tool_call', 'done'],
          ['tool_result', 'done'],
          ['text', undefined],
          ['text', undefined],
        ],
      );
      assertError(await answer(session, 't1', 'y'), 'E_ALREADY_RESOLVED');
    });
  }
}

test('an older transcript without a record goes on as it is', async (t) => {
  const { read, emulator } = await pausing(t, new MapStore(), {
    session: { store: sessionStore(olderTranscript('__OAK_CLIENT_TOOL__', false)) },
    rules: [{ reply: 'Fine.' }],
  });
  assertEnd(await read('other'), { stopReason: 'end_turn' });
  const { messages } = emulator.requests.at(-1).body;
  assert.match(resultsIn(messages[2])[0][1], /__OAK_CLIENT_TOOL__/);
  assert.equal(messages.length, 5);
});

test('a message supersedes a call that an older kernel left open', async (t) => {
  const toolStore = new MapStore();
  const ids = { conversationId: 'c', toolUseId: 't1', toolName: 'pick' };
  await toolStore.put({ ...ids, toolInput: {}, createdAt: 5 });
  const { read, session, emulator } = await pausing(t, toolStore, {
    session: { store: sessionStore(olderTranscript('__OAK_CLIENT_TOOL__', false)) },
    rules: [{ reply: 'Fine.' }],
  });
  assertEnd(await read('other'), { stopReason: 'end_turn' });
  assert.match(resultsIn(emulator.requests.at(-1).body.messages[2])[0][1], /superseded/);
  assert.equal(toolStore.records.size, 0);
  assertError(await answer(session, 't1', 'x'), 'E_RESOURCE', NOT_PENDING);
});

test('a record that an older kernel answered is carried out', async (t) => {
  const toolStore = new MapStore();
  const { session, read, results } = await pausing(t, toolStore, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Thanks.' },
      { reply: toolCall('pick', { city: 'Rome' }, { id: 'toolu_1' }) },
    ],
  });
  await read('go');
  const record = toolStore.get({ toolUseId: 'toolu_1' });
  delete record.oak;
  await toolStore.put({ ...record, result: { output: 'older', isError: false } });
  assertError(await answer(session, 'toolu_1', 'newer'), 'E_ALREADY_RESOLVED');
  const elements = await read('and?');
  assert.equal(textOf(elements), 'Thanks.');
  assert.deepEqual(results(), [['toolu_1', 'older', false]]);
});

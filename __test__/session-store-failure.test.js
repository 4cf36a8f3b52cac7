/** Stores that fail in the middle of a turn. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { SessionStoreError } from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, tool, until } from './support/boundary.js';
import { conversationIn, storedAgents } from './support/sessions.js';

const TIMEOUT_MS = 300;
const RULES = [
  {
    when: { user: 'pay', hasToolResult: false },
    times: 1,
    reply: { text: 'Paying.', toolCalls: [{ name: 'pay', input: {} }] },
  },
  { reply: (_, { user }) => `You said: ${user}` },
];

/** A store that obeys: `fault` decides what becomes of an append. */
class MoodyStore {
  /** @type {undefined | 'refuse' | 'hang'} */
  fault;
  appends = 0;
  entries = [];

  async append(_, entries) {
    this.appends += 1;
    if (this.fault === 'refuse') throw new Error('disk full');
    if (this.fault === 'hang') await new Promise(() => {});
    const known = new Set(this.entries.map(({ uuid }) => uuid));
    this.entries.push(...entries.filter(({ uuid }) => !known.has(uuid)));
  }

  async load() {
    return this.entries.length ? structuredClone(this.entries) : null;
  }

  get uuids() {
    return this.entries.map(({ uuid }) => uuid);
  }
}

/** A conversation with a tool, after one turn, on a store that can be told to fail. */
async function moody(t, { onPay = () => 'paid', ...settings } = {}) {
  const store = new MoodyStore();
  const runs = [];
  const pay = () => {
    runs.push('pay');
    return onPay(store);
  };
  const session = { store, storeTimeoutMs: TIMEOUT_MS, ...settings };
  const options = { rules: RULES, tools: [tool('pay', pay)] };
  const { emulator, newAgent } = await storedAgents(t, session, options);
  const agent = newAgent();
  const conversation = await agent.startSession({ userId: 'ann', conversationId: 'c' });
  await conversation.prompt('hello');
  return { store, runs, emulator, newAgent, agent, conversation };
}

/** Checks how a turn ended that could not be stored; gives the entries that the error names. */
function assertUnavailable(elements) {
  const [error, ...others] = elements.filter(({ level }) => level === 'error');
  assert.equal(error.code, 'E_STORE_UNAVAILABLE');
  assert.equal(error.retryable, true);
  assert.deepEqual(others, []);
  assertEnd(elements, { stopReason: 'error' });
  return error.details.unsaved;
}

for (const fault of ['refuse', 'hang']) {
  test(`D24: ${fault}: the text streams on, no tool starts, the entries are named`, async (t) => {
    const { store, runs, emulator, conversation } = await moody(t);
    store.fault = fault;
    const before = emulator.requests.length;
    const start = performance.now();
    const elements = await collect(conversation.send('pay'));
    const took = performance.now() - start;
    assert.ok(took < TIMEOUT_MS * 10, `${took} ms`);
    const text = elements.filter((element) => element.sessionUpdate === 'agent_message_chunk');
    assert.equal(text.map(({ content }) => content.text).join(''), 'Paying.');
    const unsaved = assertUnavailable(elements);
    assert.equal(unsaved.length, 3, 'prompt, text, call');
    assert.ok(unsaved.every((uuid) => !store.uuids.includes(uuid)));
    assert.deepEqual(runs, []);
    assert.equal(emulator.requests.length, before + 1);
  });

  test(`D24: ${fault}: a result that is not stored is not told to the model`, async (t) => {
    const fail = (store) => ((store.fault = fault), 'paid');
    const { store, runs, emulator, conversation } = await moody(t, { onPay: fail });
    const before = emulator.requests.length;
    const unsaved = assertUnavailable(await collect(conversation.send('pay')));
    assert.equal(unsaved.length, 1);
    assert.equal(emulator.requests.length, before + 1);
    store.fault = undefined;
    await conversation.prompt('more');
    assert.deepEqual(runs, ['pay'], 'it ran, so it does not run again');
    assert.ok(store.uuids.includes(unsaved[0]));
    const { messages } = emulator.requests.at(-1).body;
    assert.match(JSON.stringify(messages), /"paid"/);
  });
}

test('D24: what is not stored is offered by flush and by close', async (t) => {
  for (const offer of ['flush', 'close']) {
    const { store, agent, conversation } = await moody(t);
    store.fault = 'refuse';
    const unsaved = assertUnavailable(await collect(conversation.send('hi')));
    store.fault = undefined;
    await (offer === 'flush' ? conversation.flush() : agent.close());
    for (const uuid of unsaved) assert.ok(store.uuids.includes(uuid), offer);
    assert.equal(new Set(store.uuids).size, store.uuids.length);
  }
});

test('a failure that passes is not seen, and the tool waits for it', async (t) => {
  const { store, runs, conversation } = await moody(t, { storeTimeoutMs: 10_000 });
  store.fault = 'refuse';
  const stream = conversation.send('pay');
  await until(stream, ({ sessionUpdate }) => sessionUpdate === 'tool_call');
  while (store.appends < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(runs, []);
  store.fault = undefined;
  assertEnd(await collect(stream), { stopReason: 'end_turn' });
  assert.deepEqual(runs, ['pay']);
});

test('throwOnError rejects behind idle', async (t) => {
  const { store, conversation } = await moody(t);
  store.fault = 'refuse';
  const elements = [];
  const error = await errorOf(async () => {
    for await (const element of conversation.send('hi', { throwOnError: true })) {
      elements.push(element);
    }
  });
  assertRefused(error, SessionStoreError, 'E_STORE_UNAVAILABLE');
  assert.equal(error.details.unsaved.length, 2);
  assert.equal(elements.at(-1).stopReason, 'error');
});

test("onStoreFailure 'continue': tools run, and the entries are offered again", async (t) => {
  const { store, runs, conversation } = await moody(t, { onStoreFailure: 'continue' });
  store.fault = 'refuse';
  const elements = await collect(conversation.send('pay'));
  assert.deepEqual(runs, ['pay']);
  assert.equal(elements.at(-1).stopReason, 'end_turn');
  assert.ok(elements.some(({ code }) => code === 'E_STORE_UNAVAILABLE'));
  store.fault = undefined;
  await conversation.prompt('more');
  const types = store.entries.map(({ type }) => type);
  assert.deepEqual(types, [
    ...['user', 'assistant'],
    ...['user', 'assistant', 'assistant', 'user', 'assistant'],
    ...['user', 'assistant'],
  ]);
});

test('who went on with the conversation meanwhile is not hidden by what comes late', async (t) => {
  const { store, emulator, newAgent, conversation } = await moody(t);
  store.fault = 'refuse';
  const unsaved = assertUnavailable(await collect(conversation.send('lost')));
  store.fault = undefined;
  const other = await newAgent().startSession({ userId: 'ann', conversationId: 'c' });
  await other.prompt('meanwhile');
  const elements = await collect(conversation.send('back'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.ok(elements.some(({ message }) => /were dropped/.test(message ?? '')));
  assert.ok(unsaved.every((uuid) => !store.uuids.includes(uuid)));
  const said = [
    'user: hello',
    'assistant: You said: hello',
    'user: meanwhile',
    'assistant: You said: meanwhile',
    'user: back',
  ];
  assert.deepEqual(conversationIn(emulator.requests.at(-1)), said);
  // Also for who reads it anew.
  await (await newAgent().resumeSession('c', { userId: 'ann' })).prompt('again');
  const more = ['assistant: You said: back', 'user: again'];
  assert.deepEqual(conversationIn(emulator.requests.at(-1)), [...said, ...more]);
});

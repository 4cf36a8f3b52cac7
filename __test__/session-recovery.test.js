/** Transcripts of other kernels, and of processes that ended in the middle of a turn. */
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';

import { CloudBaseSessionStore, HookError, InMemoryDriver, openSessionStore } from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, tool } from './support/boundary.js';
import { conversationIn, storedAgents, temporaryFolder } from './support/sessions.js';
import { DURABLE } from './support/sessions.js';

const FIXTURES = new URL('fixtures/claude-sdk/transcripts/', import.meta.url);
const KEY = { projectKey: 'test-env', sessionId: 'c' };

const STORES = {
  sqlite: (t) => openSessionStore(DURABLE.sqlite(temporaryFolder(t))),
  file: (t) => openSessionStore(DURABLE.file(temporaryFolder(t))),
  CloudBaseSessionStore: () => new CloudBaseSessionStore({ driver: new InMemoryDriver() }),
};

/** Entries of a conversation that ended in the middle of an answer with calls. */
function interrupted(calls, results = []) {
  const entry = (fields) => ({
    sessionId: 'c',
    isSidechain: false,
    timestamp: '2026-01-02T03:04:05.678Z',
    ...fields,
  });
  const answers = calls.map((call, at) =>
    entry({
      type: 'assistant',
      uuid: `a${at}`,
      parentUuid: at === 0 ? 'u0' : `a${at - 1}`,
      message: {
        role: 'assistant',
        id: 'msg_1',
        content: [{ type: 'tool_use', input: {}, ...call }],
      },
    }),
  );
  return [
    entry({ type: 'user', uuid: 'u0', parentUuid: null, message: { role: 'user', content: 'go' } }),
    ...answers,
    ...results.map(({ at, ...result }) =>
      entry({
        type: 'user',
        uuid: `r${at}`,
        parentUuid: `a${at}`,
        message: { role: 'user', content: [{ type: 'tool_result', ...result }] },
      }),
    ),
  ];
}

async function resumed(t, store, entries, options) {
  await store.append(KEY, entries);
  const { emulator, newAgent } = await storedAgents(t, { store }, options);
  const session = await newAgent().resumeSession('c');
  return { emulator, session, newAgent };
}

for (const [name, newStore] of Object.entries(STORES)) {
  for (const file of readdirSync(FIXTURES)) {
    test(`${name}: a transcript of the Claude Agent SDK goes on: ${file}`, async (t) => {
      const entries = JSON.parse(readFileSync(new URL(file, FIXTURES), 'utf8'));
      const store = newStore(t);
      const { emulator, session } = await resumed(t, store, entries);
      assert.equal(session.userId, 'resumed');
      assertEnd(await collect(session.send('go on')), { stopReason: 'end_turn' });
      const [request] = emulator.requests;
      const prompt = entries.find(({ type, message }) => type === 'user' && message);
      const first = [].concat(prompt.message.content)[0];
      assert.ok(conversationIn(request)[0].includes(first.text ?? first));
      const ids = JSON.stringify(entries).match(/"type":"tool_use","id":"[^"]+/g) ?? [];
      for (const id of ids) assert.ok(JSON.stringify(request.body.messages).includes(id.slice(22)));
      const stored = await store.load(KEY);
      assert.deepEqual(stored.slice(0, entries.length), entries);
      const history = await session.getHistory();
      assert.ok(history.length >= 4);
    });
  }

  test(`${name}: FC-B1, FC-B3: open calls are answered once, finished ones are not run again`, async (t) => {
    const calls = [
      { id: 't0', name: 'pay' },
      { id: 't1', name: 'pay' },
      { id: 't2', name: 'pay' },
    ];
    const entries = interrupted(calls, [
      { at: 0, tool_use_id: 't0', content: 'paid' },
      { at: 2, tool_use_id: 't2', content: 'paid too' },
    ]);
    const ran = [];
    const tools = [tool('pay', () => ran.push('pay'))];
    const { emulator, session } = await resumed(t, newStore(t), entries, { tools });
    await session.prompt('go on');
    const [, answer, { content }] = emulator.requests[0].body.messages;
    assert.equal(answer.content.length, 3);
    assert.deepEqual(
      content.map(({ tool_use_id: id, is_error: failed }) => [id, failed ?? false]),
      [
        ['t0', false],
        ['t1', true],
        ['t2', false],
        [undefined, false],
      ],
    );
    assert.match(JSON.stringify(content[1]), /unknown/);
    assert.deepEqual(ran, []);
    await session.prompt('more');
    assert.equal(emulator.requests[1].body.messages.length, 5);
  });

  test(`${name}: FC-B2: results without a call stay in the store and out of the request`, async (t) => {
    const [prompt] = interrupted([]);
    const orphan = interrupted([], [{ at: 9, tool_use_id: 'lost', content: 'x' }])[1];
    const store = newStore(t);
    const { emulator, session } = await resumed(t, store, [
      { ...orphan, parentUuid: null },
      prompt,
    ]);
    await session.prompt('go on');
    assert.doesNotMatch(JSON.stringify(emulator.requests[0].body.messages), /lost/);
    assert.equal((await store.load(KEY))[0].uuid, 'r9');
  });
}

test('sentinels of the older kernel go on as results, and are not shown', async (t) => {
  const sentinel = '__OAK_INTERRUPT__{"toolUseId":"t0"}';
  const entries = interrupted(
    [{ id: 't0', name: 'pay' }],
    [{ at: 0, tool_use_id: 't0', content: sentinel, is_error: true }],
  );
  const { emulator, session } = await resumed(t, STORES.sqlite(t), entries);
  await session.prompt('go on');
  assert.match(JSON.stringify(emulator.requests[0].body.messages), /__OAK_INTERRUPT__/);
  assert.doesNotMatch(JSON.stringify(await session.getHistory()), /__OAK_INTERRUPT__/);
});

test('D25: a lost call of an idempotent tool runs again, with the same key', async (t) => {
  const keys = [];
  const tools = [
    tool('pay', (_, { idempotencyKey }) => (keys.push(idempotencyKey), 'paid'), {
      idempotent: true,
    }),
  ];
  const entries = interrupted([{ id: 't0', name: 'pay' }]);
  const { emulator, session } = await resumed(t, STORES.sqlite(t), entries, { tools });
  const elements = await collect(session.send('go on'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.deepEqual(keys, ['c:t0']);
  assert.match(JSON.stringify(emulator.requests[0].body.messages[2]), /paid/);
  const told = elements.filter(({ toolCallId }) => toolCallId === 't0');
  assert.equal(told.at(-1).status, 'completed');
});

const FATES = [
  ['nothing', () => undefined, /unknown/, 0],
  ["'retry'", () => 'retry', /paid/, 1],
  ['a result', () => ({ result: { receipt: 7 } }), /receipt/, 0],
];
for (const [what, decide, words, runs] of FATES) {
  test(`D25: onUnknownOutcome answers ${what}`, async (t) => {
    let ran = 0;
    const asked = [];
    const options = {
      tools: [tool('pay', () => ((ran += 1), 'paid'))],
      onUnknownOutcome: (call) => (asked.push(call), decide()),
    };
    const entries = interrupted([{ id: 't0', name: 'pay', input: { sum: 1 } }]);
    const { emulator, session } = await resumed(t, STORES.sqlite(t), entries, options);
    await session.prompt('go on');
    assert.match(JSON.stringify(emulator.requests[0].body.messages[2]), words);
    assert.equal(ran, runs);
    assert.deepEqual(asked, [
      {
        conversationId: 'c',
        userId: 'resumed',
        toolUseId: 't0',
        toolName: 'pay',
        input: { sum: 1 },
      },
    ]);
    await session.prompt('again');
    assert.equal(asked.length, 1);
  });
}

test('D25: an onUnknownOutcome that fails or answers nonsense ends the run, and nothing is lost', async (t) => {
  const answers = [
    () => 'maybe',
    () => 7,
    () => Promise.reject(new Error('no idea')),
    () => undefined,
  ];
  const options = { onUnknownOutcome: () => answers.shift()() };
  const entries = interrupted([{ id: 't0', name: 'pay' }]);
  const { emulator, session } = await resumed(t, STORES.sqlite(t), entries, options);
  for (let at = 0; at < 3; at += 1) {
    const error = await errorOf(session.prompt('go on'));
    assertRefused(error, HookError, 'E_HOOK', 'onUnknownOutcome');
  }
  assert.equal(emulator.requests.length, 0);
  await session.prompt('go on');
  assert.equal(emulator.requests[0].body.messages.length, 3);
});

test('what is stored has the fields that other readers of the format need', async (t) => {
  const store = STORES.sqlite(t);
  const rules = [
    {
      when: { hasToolResult: false },
      reply: { text: 'Wait.', toolCalls: [{ name: 'pay', input: {} }] },
    },
    { reply: 'Done.' },
  ];
  const tools = [tool('pay', () => ({ paid: true }))];
  const { newAgent } = await storedAgents(t, { store }, { rules, tools });
  await newAgent().prompt('pay', { userId: 'ann', conversationId: 'c' });
  const entries = await store.load(KEY);
  assert.deepEqual(
    entries.map(({ type, message }) => [type, message.role, message.content[0].type]),
    [
      ['user', 'user', undefined],
      ['assistant', 'assistant', 'text'],
      ['assistant', 'assistant', 'tool_use'],
      ['user', 'user', 'tool_result'],
      ['assistant', 'assistant', 'text'],
    ],
  );
  const known = new Set([null]);
  for (const entry of entries) {
    assert.ok(known.has(entry.parentUuid), 'the parent comes first');
    known.add(entry.uuid);
    assert.match(entry.uuid, /^[0-9a-f-]{36}$/);
    assert.match(entry.timestamp, /^\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z$/);
    assert.deepEqual(
      [entry.sessionId, entry.isSidechain, entry.userType, entry.entrypoint],
      ['c', false, 'external', 'sdk-ts'],
    );
  }
  const [, text, call, result] = entries;
  assert.equal(text.message.id, call.message.id);
  assert.equal(text.message.stop_reason, 'tool_use');
  assert.ok(text.message.usage.output_tokens > 0);
  assert.deepEqual([result.parentUuid, result.sourceToolAssistantUUID], [call.uuid, call.uuid]);
  assert.deepEqual(result.toolUseResult, { paid: true });
});

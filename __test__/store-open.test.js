/** `openSessionStore`, and messages in their short form. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  InvalidConfigError,
  KernelError,
  NotImplementedError,
  openSessionStore,
  toSessionMessage,
} from '../index.js';
import { nativeStoreOf } from '../js/session-store/brand.js';

const KEY = { projectKey: 'p', sessionId: 's' };

test('a store is opened by the settings of a session, others have no effect', async () => {
  const store = openSessionStore({ database: 'memory', tablePrefix: 'x_', flush: 'eager', a: 1 });
  await store.append(KEY, [{ type: 'user', uuid: 'a' }]);
  assert.deepEqual(await store.load(KEY), [{ type: 'user', uuid: 'a' }]);
  const other = openSessionStore({ database: 'memory' });
  assert.equal(await other.load(KEY), null);
});

test('the kernel knows its own stores', () => {
  assert.ok(nativeStoreOf(openSessionStore({ database: 'memory' })));
  for (const value of [
    undefined,
    null,
    7,
    {},
    Object.create(openSessionStore({ database: 'memory' })),
  ]) {
    assert.equal(nativeStoreOf(value), undefined);
  }
});

test('wrong settings are refused by name', () => {
  for (const [settings, text] of [
    [undefined, 'must be an object'],
    [[], 'must be an object'],
    [{}, 'database is missing'],
    [{ database: 'oracle' }, 'database must be one of'],
    [{ database: 7 }, 'database must be a string'],
    [{ database: 'mongo' }, 'reserved for future use and not supported yet'],
    [{ database: 'sqlite' }, 'path is missing'],
    [{ database: 'pgsql' }, 'url is missing'],
    [{ database: 'memory', tablePrefix: 'a;b' }, 'tablePrefix must be'],
    [{ database: 'memory', durability: 'never' }, 'durability must be one of'],
  ]) {
    assert.throws(
      () => openSessionStore(settings),
      (error) => error instanceof InvalidConfigError && error.message.includes(text),
      JSON.stringify(settings),
    );
  }
  assert.throws(() => openSessionStore({ database: 'flexdb' }), NotImplementedError);
});

test('entries come back as they were, strange ones too', async () => {
  const store = openSessionStore({ database: 'memory' });
  const entries = [
    { type: 'x', number: 1e21, small: -1.5e-9, big: 2 ** 53 - 1, text: '\u2028"\\😀', empty: '' },
    { type: 'user', message: null, list: [[], {}, null, true, [1, [2, [3]]]] },
    { '': 1, __proto__: null, constructor: 'c', ключ: 'значение' },
    { type: 7, uuid: 7, timestamp: 7 },
    {},
  ];
  await store.append(KEY, entries);
  assert.deepEqual(await store.load(KEY), JSON.parse(JSON.stringify(entries)));
  await store.append({ ...KEY, sessionId: 'half' }, [{ text: 'a\ud800b' }]);
  assert.deepEqual(await store.load({ ...KEY, sessionId: 'half' }), [{ text: 'a\ufffdb' }]);
});

test('an entry with a known uuid is stored once', async () => {
  const store = openSessionStore({ database: 'memory' });
  await store.append(KEY, [{ uuid: 'a' }, { type: 'tag' }]);
  await store.append(KEY, [{ uuid: 'a' }, { type: 'tag' }, { uuid: 'b' }]);
  assert.equal((await store.load(KEY)).length, 4);
});

test('values of wrong shapes reject and leave nothing behind', async () => {
  const store = openSessionStore({ database: 'memory' });
  const self = { type: 'user' };
  self.self = self;
  for (const entries of [undefined, 'x', [1], [null], [[]], [self], [{ n: 1n }]]) {
    await assert.rejects(store.append(KEY, entries), (error) => error instanceof Error);
  }
  for (const key of [undefined, {}, { ...KEY, sessionId: 'a\0' }, { ...KEY, subpath: 1 }]) {
    await assert.rejects(store.load(key), KernelError);
    await assert.rejects(store.append(key, [{}]), KernelError);
  }
  assert.equal(await store.load(KEY), null);
});

test('summaries are folded from what is appended', async () => {
  const store = openSessionStore({ database: 'memory' });
  await store.append(KEY, [
    { type: 'user', uuid: 'a', message: { role: 'user', content: 'hello' } },
    { type: 'custom-title', customTitle: 'T' },
  ]);
  const [summary] = await store.listSessionSummaries('p');
  assert.equal(summary.sessionId, 's');
  assert.ok(summary.mtime > 1e12);
  assert.deepEqual(summary.data, { firstPrompt: 'hello', customTitle: 'T' });
});

test('more sessions than one page are listed', async () => {
  const store = openSessionStore({ database: 'memory' });
  const ids = Array.from({ length: 1_001 }, (_, at) => `s${at}`);
  await Promise.all(ids.map((sessionId) => store.append({ ...KEY, sessionId }, [{}])));
  const listed = (await store.listSessions('p')).map(({ sessionId }) => sessionId);
  assert.deepEqual(listed.sort(), ids.sort());
});

test('a raw object is a message by its type, or else its role', () => {
  for (const [raw, expected] of [
    [
      { type: 'user', role: 'assistant', message: 'hi' },
      { role: 'user', content: 'hi' },
    ],
    [
      { role: 'system', content: 'x', uuid: 'u' },
      { role: 'system', content: 'x', uuid: 'u' },
    ],
    [
      { type: 'assistant', message: { id: 1 }, session_id: 'a', sessionId: 'b' },
      { role: 'assistant', content: '{"id":1}', sessionId: 'a' },
    ],
    [
      { type: 'user', content: ['x'], sessionId: 'b', parentToolUseId: 't' },
      { role: 'user', sessionId: 'b', parentToolUseId: 't' },
    ],
    [
      { type: 'user', parent_tool_use_id: 'p', parentToolUseId: 't' },
      { role: 'user', parentToolUseId: 'p' },
    ],
  ]) {
    assert.deepEqual(toSessionMessage(raw), expected);
  }
  for (const raw of [null, undefined, 'user', 7, [], {}, { type: 'summary' }, { role: 'tool' }]) {
    assert.equal(toSessionMessage(raw), null);
  }
});

/** The driver in memory, and the key that it shares with other drivers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InMemoryDriver, InvalidConfigError, encodeSessionKey } from '../index.js';

const KEY = { projectKey: 'p', sessionId: 's' };
const SUB = { ...KEY, subpath: 'subagents/a' };

function message(uuid, more) {
  return { type: 'user', uuid, message: { role: 'user', content: uuid }, ...more };
}

test('a key is its parts joined, and no two keys are one text', () => {
  assert.equal(encodeSessionKey(KEY), 'p|s');
  assert.equal(encodeSessionKey({ ...KEY, subpath: '' }), 'p|s');
  assert.equal(encodeSessionKey(SUB), 'p|s|subagents/a');
  const texts = [
    { projectKey: 'a|b', sessionId: 'c' },
    { projectKey: 'a', sessionId: 'b|c' },
    { projectKey: 'a', sessionId: 'b', subpath: 'c' },
    { projectKey: 'a%7Cb', sessionId: 'c' },
  ].map(encodeSessionKey);
  assert.equal(new Set(texts).size, 4);
});

test('a key of a wrong shape is refused', () => {
  const wrong = [null, 'p|s', {}, { projectKey: 'p' }, { projectKey: 1, sessionId: 's' }];
  const ids = ['', 'a\0b', 'a\nb', 'é'.repeat(257)].map((sessionId) => ({ ...KEY, sessionId }));
  for (const key of [...wrong, ...ids, { ...KEY, subpath: 7 }]) {
    assert.throws(() => encodeSessionKey(key), InvalidConfigError);
  }
  assert.equal(encodeSessionKey({ ...KEY, sessionId: 'é'.repeat(256) }).length, 258);
});

test('an entry with a known uuid takes the place of the older', async () => {
  const driver = new InMemoryDriver();
  await driver.appendEntries(KEY, [message('a'), message('b'), { type: 'tag' }]);
  await driver.appendEntries(KEY, [message('a', { changed: true }), { type: 'tag' }]);
  const expected = [
    message('a', { changed: true }),
    message('b'),
    { type: 'tag' },
    { type: 'tag' },
  ];
  assert.deepEqual(await driver.loadEntries(KEY), expected);
  assert.deepEqual(await driver.loadRecentEntries(KEY, 3), expected.slice(-3));
  assert.deepEqual(await driver.loadRecentEntries(KEY, 0), []);
  assert.equal(await driver.loadRecentEntries(SUB, 3), null);
  assert.equal(driver.countEntries(KEY), 4);
  assert.equal(driver.countEntries(SUB), 0);
});

test('what comes out is not what is kept', async () => {
  const driver = new InMemoryDriver();
  const entry = message('a');
  await driver.appendEntries(KEY, [entry]);
  entry.message.content = 'changed';
  (await driver.loadEntries(KEY))[0].message.content = 'changed';
  assert.deepEqual(await driver.loadEntries(KEY), [message('a')]);
});

test('entries are found by the id of their message or their own', async () => {
  const driver = new InMemoryDriver();
  const part = (uuid) => ({ type: 'assistant', uuid, message: { id: 'm', content: [] } });
  await driver.appendEntries(KEY, [part('a'), message('b'), part('c'), message('d')]);
  const found = await driver.loadEntriesByMessageIds(KEY, ['d', 'm', 'nobody']);
  assert.deepEqual(found, [part('a'), part('c'), message('d')]);
  assert.deepEqual(await driver.loadEntriesByMessageIds(KEY, ['c']), [part('c')]);
});

test('the index has messages of the main transcript only, newest first', async () => {
  const driver = new InMemoryDriver();
  const at = (second) => ({ timestamp: `2026-01-02T03:04:0${second}.000Z` });
  const rows = [
    message('a', at(1)),
    { type: 'assistant', uuid: 'b1', message: { id: 'b' }, ...at(2) },
    { type: 'assistant', uuid: 'b2', message: { id: 'b' }, ...at(3) },
    { type: 'last-prompt' },
    message('side', { isSidechain: true }),
    // Earlier by its clock, later in the transcript.
    message('c', at(0)),
  ];
  await driver.appendSessionMessage(KEY, rows);
  await driver.appendSessionMessage(KEY, rows);
  await driver.appendSessionMessage(SUB, [message('sub')]);
  const ids = async (options) =>
    (await driver.querySessionMessages('p', 's', options)).map((row) => row.messageId);
  assert.deepEqual(await ids(), ['c', 'b', 'a']);
  assert.deepEqual(await ids({ limit: 2 }), ['c', 'b']);
  assert.deepEqual(await ids({ limit: 0 }), ['c', 'b', 'a']);
  const time = Date.parse(at(1).timestamp);
  assert.deepEqual(await ids({ before: time }), ['c']);
  assert.deepEqual(await ids({ after: time }), ['b']);
  assert.deepEqual(await ids({ before: 0 }), ['c', 'b', 'a']);
  const [, row] = await driver.querySessionMessages('p', 's');
  assert.equal(typeof row.mtime, 'number');
  delete row.mtime;
  assert.deepEqual(row, {
    sessionKey: 'p|s',
    conversationId: 's',
    messageId: 'b',
    role: 'assistant',
    createdAt: Date.parse(at(2).timestamp),
    status: 'done',
  });
  await driver.deleteSessionMessages(KEY);
  await driver.appendSessionMessage(KEY, [...rows, message('new')]);
  assert.deepEqual(await ids(), ['new']);
});

test('a session is known by what was registered, and keeps what is not given again', async () => {
  const driver = new InMemoryDriver();
  const session = {
    projectKey: 'p',
    sessionId: 's',
    userId: 'ann',
    title: 'T',
    metadata: { a: 1 },
  };
  await driver.registerSession(session);
  await driver.registerSession({ projectKey: 'p', sessionId: 's', userId: 'bob' });
  const { mtime, createdAt, ...known } = await driver.getSession('p', 's');
  assert.deepEqual(known, { sessionId: 's', userId: 'bob', title: 'T', metadata: { a: 1 } });
  assert.ok(createdAt <= mtime && mtime > 1e12);
  assert.equal(await driver.getSession('p', 'nobody'), null);
  await driver.upsertSummary({ projectKey: 'p', sessionId: 's', mtime: 5, data: { tag: 'x' } });
  assert.deepEqual(await driver.listSummaries('p'), [
    { sessionId: 's', mtime: 5, data: { tag: 'x' } },
  ]);
});

test('deleting a session takes its rows along, and everything can be forgotten', async () => {
  const driver = new InMemoryDriver();
  for (const key of [KEY, SUB, { projectKey: 'q', sessionId: 's' }]) {
    await driver.appendEntries(key, [message('a')]);
    await driver.appendSessionMessage(key, [message('a')]);
  }
  await driver.upsertSummary({ ...KEY, mtime: 5, data: {} });
  assert.deepEqual(driver.listProjectKeys(), ['p', 'q']);
  await driver.deleteSession(KEY);
  assert.deepEqual(driver.listProjectKeys(), ['q']);
  assert.deepEqual(await driver.listSummaries('p'), []);
  assert.deepEqual(await driver.querySessionMessages('p', 's'), []);
  assert.equal((await driver.querySessionMessages('q', 's')).length, 1);
  driver.clearAll();
  assert.deepEqual(driver.listProjectKeys(), []);
});

/**
 * What every session store does, as the Claude Agent SDK asks of stores.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

const MAIN = { projectKey: 'P', sessionId: 's1' };
const SUB = { ...MAIN, subpath: 'subagents/x' };

/** Entries without uuid: equal ones must not be merged. */
const entry = (n) => ({ type: 'user', n, nested: { list: [n, { deep: null }], text: 'ä "q" 😀' } });
const ids = (sessions) => sessions.map(({ sessionId }) => sessionId).sort();

const CASES = {
  'an append of two entries comes back as it was': async (store) => {
    await store.append(MAIN, [entry(1), entry(1)]);
    assert.deepEqual(await store.load(MAIN), [entry(1), entry(1)]);
  },
  'an unknown transcript is null': async (store) => {
    assert.equal(await store.load(MAIN), null);
    assert.equal(await store.load(SUB), null);
  },
  'appends come back in the order of the calls': async (store) => {
    await store.append(MAIN, [entry(1)]);
    await store.append(MAIN, [entry(2), entry(3)]);
    await store.append(MAIN, [entry(4)]);
    assert.deepEqual(await store.load(MAIN), [1, 2, 3, 4].map(entry));
  },
  'an append of nothing writes nothing': async (store) => {
    await store.append(MAIN, []);
    assert.equal(await store.load(MAIN), null);
    await store.append(MAIN, [entry(1)]);
    await store.append(MAIN, []);
    assert.deepEqual(await store.load(MAIN), [entry(1)]);
  },
  'a sub-path is a transcript of its own': async (store) => {
    await store.append(MAIN, [entry(1)]);
    await store.append(SUB, [entry(2)]);
    assert.deepEqual(await store.load(MAIN), [entry(1)]);
    assert.deepEqual(await store.load(SUB), [entry(2)]);
  },
  'the same id in two projects is two sessions': async (store) => {
    const other = { ...MAIN, projectKey: 'Q' };
    await store.append(MAIN, [entry(1)]);
    await store.append(other, [entry(2)]);
    assert.deepEqual(await store.load(MAIN), [entry(1)]);
    assert.deepEqual(await store.load(other), [entry(2)]);
  },
  'the sessions of a project are listed with milliseconds': async (store) => {
    await store.append(MAIN, [entry(1)]);
    await store.append({ ...MAIN, sessionId: 's2' }, [entry(1)]);
    await store.append({ projectKey: 'Q', sessionId: 's3' }, [entry(1)]);
    const sessions = await store.listSessions('P');
    assert.deepEqual(ids(sessions), ['s1', 's2']);
    for (const { mtime } of sessions) assert.ok(Number.isInteger(mtime) && mtime > 1e12, mtime);
    assert.deepEqual(await store.listSessions('nobody'), []);
  },
  'a session that has only a sub-path is not listed': async (store) => {
    await store.append(SUB, [entry(1)]);
    assert.deepEqual(await store.listSessions('P'), []);
  },
  'a deleted transcript is gone; deleting what never was succeeds': async (store) => {
    await store.append(MAIN, [entry(1)]);
    await store.delete(MAIN);
    assert.equal(await store.load(MAIN), null);
    await store.delete({ projectKey: 'no', sessionId: 'body' });
  },
  'deleting a main transcript takes its sub-paths along and nothing else': async (store) => {
    const others = [
      { projectKey: 'P', sessionId: 's2' },
      { projectKey: 'Q', sessionId: 's1' },
    ];
    for (const key of [MAIN, SUB, { ...MAIN, subpath: 'y' }, ...others]) {
      await store.append(key, [entry(1)]);
    }
    await store.delete(MAIN);
    assert.equal(await store.load(SUB), null);
    assert.deepEqual(await store.listSubkeys(MAIN), []);
    for (const key of others) assert.deepEqual(await store.load(key), [entry(1)]);
  },
  'deleting a sub-path takes only that one': async (store) => {
    const sibling = { ...MAIN, subpath: 'subagents/y' };
    for (const key of [MAIN, SUB, sibling]) await store.append(key, [entry(1)]);
    await store.delete(SUB);
    assert.equal(await store.load(SUB), null);
    for (const key of [MAIN, sibling]) assert.deepEqual(await store.load(key), [entry(1)]);
    assert.deepEqual(await store.listSubkeys(MAIN), ['subagents/y']);
  },
  'the sub-paths of a session are listed, of that session only': async (store) => {
    for (const subpath of ['subagents/x', 'subagents/y']) {
      await store.append({ ...MAIN, subpath }, [entry(1)]);
    }
    await store.append({ ...MAIN, sessionId: 's2', subpath: 'subagents/z' }, [entry(1)]);
    assert.deepEqual((await store.listSubkeys(MAIN)).sort(), ['subagents/x', 'subagents/y']);
  },
  'the main transcript is no sub-path': async (store) => {
    await store.append(MAIN, [entry(1)]);
    assert.deepEqual(await store.listSubkeys(MAIN), []);
    assert.deepEqual(await store.listSubkeys({ projectKey: 'P', sessionId: 'nobody' }), []);
  },
};

/**
 * Adds the tests of a kind of store.
 *
 * @param {string} kind name in front of the tests
 * @param {(t: import('node:test').TestContext) => object | Promise<object>} open gives a fresh store;
 *   with nothing the test is skipped
 */
export function conformance(kind, open) {
  for (const [name, check] of Object.entries(CASES)) {
    test(`${kind}: ${name}`, async (t) => {
      const store = await open(t);
      if (!store) return t.skip(`${kind} is not there`);
      await check(store);
    });
  }
}

/** Session stores of programs as the core calls them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CloudBaseSessionStore, InMemoryDriver, InvalidConfigError } from '../index.js';
import { prepareStore } from '../js/session-store/adapt.js';

const PATH = 'config.session.store';
const KEY = { projectKey: 'p', sessionId: 's' };

const prepare = (store) => prepareStore(store, PATH);
const names = (prepared) =>
  Object.keys(prepared)
    .filter((name) => typeof prepared[name] === 'function')
    .sort();

function prompt(uuid, more) {
  return {
    type: 'user',
    uuid,
    parentUuid: null,
    message: { role: 'user', content: uuid },
    ...more,
  };
}

function block(uuid, text, id = 'm') {
  const content = [{ type: 'text', text }];
  return { type: 'assistant', uuid, message: { id, role: 'assistant', model: 'glm', content } };
}

/** A store that saves whole transcripts, as JSON text. */
class Whole {
  saved = new Map();
  saves = 0;

  save(sessionId, messages, metadata) {
    this.saves += 1;
    const dates = { id: sessionId, createdAt: new Date(1e12), updatedAt: new Date(2e12) };
    this.saved.set(sessionId, JSON.stringify({ metadata: { ...metadata, ...dates }, messages }));
  }

  async load(sessionId) {
    return this.saved.has(sessionId) ? JSON.parse(this.saved.get(sessionId)) : null;
  }

  async list() {
    return [...this.saved.values()].map((text) => JSON.parse(text).metadata);
  }

  async delete(sessionId) {
    return this.saved.delete(sessionId);
  }

  messages(sessionId = 's') {
    return JSON.parse(this.saved.get(sessionId)).messages;
  }
}

test('the methods of a class keep their this, and take the arguments that users know', async () => {
  class Store {
    calls = [];

    append(...args) {
      this.calls.push(['append', ...args]);
    }

    async load(...args) {
      this.calls.push(['load', ...args]);
      return [];
    }

    listSubkeys(...args) {
      this.calls.push(['listSubkeys', ...args]);
      return ['x'];
    }
  }
  const store = new Store();
  const prepared = prepare(store);
  assert.deepEqual(names(prepared), ['append', 'listSubkeys', 'load']);
  await prepared.append({ key: KEY, entries: [1] });
  assert.deepEqual(await prepared.load({ key: KEY }), []);
  assert.deepEqual(prepared.listSubkeys({ key: KEY }), ['x']);
  assert.deepEqual(store.calls, [
    ['append', KEY, [1]],
    ['load', KEY],
    ['listSubkeys', KEY],
  ]);
  assert.equal(prepared.replaces, false);
});

test('what is no store is left for the core to refuse', () => {
  for (const value of [undefined, null, 7, 'x', [], () => {}]) assert.equal(prepare(value), value);
  assert.deepEqual(names(prepare({})), []);
  assert.deepEqual(names(prepare({ append() {} })), ['append']);
  assert.deepEqual(names(prepare({ append: 7, load() {} })), ['load']);
  assert.deepEqual(names(prepare({ save() {} })), ['save']);
});

test('hostile objects are refused with the name of the member', () => {
  const throwing = {
    get append() {
      throw new Error('no');
    },
  };
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  const methods = { append() {}, load() {} };
  const driver = () => {
    throw new Error('no');
  };
  for (const [store, text] of [
    [throwing, `${PATH}.append cannot be read`],
    [{ ...methods, getDriver: driver }, `${PATH}.getDriver() threw`],
    [revoked.proxy, PATH],
  ]) {
    const refuse = () => prepare(store);
    if (store === revoked.proxy) assert.throws(refuse, Error);
    else
      assert.throws(
        refuse,
        (error) => error instanceof InvalidConfigError && error.message.includes(text),
      );
  }
  for (const value of [undefined, null, 7, {}]) {
    assert.deepEqual(names(prepare({ ...methods, getDriver: () => value })), ['append', 'load']);
  }
});

test('the index of a driver is used, with the project key of the store', async () => {
  const driver = new InMemoryDriver();
  const prepared = prepare(new CloudBaseSessionStore({ driver, projectKey: 'env' }));
  assert.equal(prepared.replaces, true);
  await prepared.append({ key: KEY, entries: [prompt('a')] });
  const query = { projectKey: 'p', conversationId: 's', options: { limit: 10 } };
  assert.equal((await prepared.querySessionMessages(query)).length, 1);
  await prepared.deleteSessionMessages({ key: KEY });
  assert.deepEqual(await prepared.querySessionMessages(query), []);
  assert.equal(driver.countEntries({ ...KEY, projectKey: 'env' }), 1);
  await prepared.registerSession({ ...KEY, userId: 'ann' });
  assert.equal((await prepared.getSession(KEY)).userId, 'ann');
});

test('a derived index is left to the core', () => {
  const inner = new InMemoryDriver();
  const mandatory = ['appendEntries', 'loadEntries', 'registerSession', 'listSessions'];
  const driver = Object.fromEntries(
    [...mandatory, 'deleteSession'].map((name) => [name, inner[name].bind(inner)]),
  );
  const prepared = prepare(new CloudBaseSessionStore({ driver }));
  assert.equal(prepared.querySessionMessages, undefined);
  assert.equal(prepared.replaces, false);
});

test('a whole transcript holds messages, and gives back the entries', async () => {
  const store = new Whole();
  const entries = [
    { type: 'queue-operation', operation: 'enqueue' },
    prompt('a', { cwd: '/x', timestamp: '2026-01-02T03:04:05.678Z' }),
    block('b', 'one'),
    block('c', 'two'),
    { type: 'last-prompt', lastPrompt: 'a' },
    prompt('note', { isMeta: true }),
    block('d', 'three'),
    block('e', 'four', 'm2'),
    { type: 'custom-title', customTitle: 'T' },
  ];
  const prepared = prepare(store);
  assert.equal(await prepared.load({ key: KEY }), null);
  await prepared.append({ key: KEY, entries: entries.slice(0, 3) });
  await prepared.append({ key: KEY, entries: entries.slice(3) });
  const messages = store.messages();
  assert.deepEqual(
    messages.map(({ role, content }) => [role, content]),
    [
      ['user', 'a'],
      ['assistant', [...block('', 'one').message.content, ...block('', 'two').message.content]],
      ['assistant', block('', 'three').message.content],
      ['assistant', block('', 'four').message.content],
    ],
  );
  assert.deepEqual(
    messages.map(({ uuid }) => uuid),
    ['a', 'b', 'd', 'e'],
  );
  assert.deepEqual(await prepared.load({ key: KEY }), entries);
  const fresh = prepare(store);
  assert.deepEqual(await fresh.load({ key: KEY }), entries);
  const { metadata } = await store.load('s');
  const { cwd, model, summary, firstPrompt } = metadata;
  const expected = { cwd: '/x', model: 'glm', summary: 'T', firstPrompt: 'a' };
  assert.deepEqual({ cwd, model, summary, firstPrompt }, expected);
});

test('messages of others become a chain, always the same', async () => {
  const store = new Whole();
  store.save('s', [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [{ type: 'text', text: 'yo' }], uuid: 'own' },
    { role: 'system', content: 'x' },
  ]);
  const load = async () => prepare(store).load({ key: KEY });
  const entries = await load();
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['user', 'assistant', 'system'],
  );
  assert.equal(entries[0].parentUuid, null);
  assert.equal(entries[1].parentUuid, entries[0].uuid);
  assert.equal(entries[1].uuid, 'own');
  assert.equal(entries[2].parentUuid, 'own');
  assert.deepEqual(entries[0].message, { role: 'user', content: 'hi' });
  assert.deepEqual(await load(), entries);
  const prepared = prepare(store);
  await prepared.append({ key: KEY, entries: [prompt('new', { parentUuid: 'own' })] });
  assert.deepEqual(await load(), [...entries, prompt('new', { parentUuid: 'own' })]);
});

test('a changed message keeps what its entry held beside it', async () => {
  const store = new Whole();
  await prepare(store).append({
    key: KEY,
    entries: [prompt('a'), block('b', '1'), block('c', '2')],
  });
  const { metadata, messages } = await store.load('s');
  messages[0].content = 'changed';
  messages[1].content = [];
  store.save('s', messages, metadata);
  const entries = await prepare(store).load({ key: KEY });
  assert.deepEqual(entries[0], prompt('a', { message: { role: 'user', content: 'changed' } }));
  assert.deepEqual(
    entries.map(({ uuid }) => uuid),
    ['a', 'b'],
  );
});

test('after a failed save the store is read again', async () => {
  const store = new Whole();
  const prepared = prepare(store);
  await prepared.append({ key: KEY, entries: [prompt('a')] });
  const { save } = Whole.prototype;
  store.save = async (...args) => {
    save.apply(store, args);
    throw new Error('the disk is full');
  };
  const failing = prepare(store);
  await assert.rejects(failing.append({ key: KEY, entries: [prompt('b')] }), /disk/);
  const uuids = async () => (await failing.load({ key: KEY })).map(({ uuid }) => uuid);
  assert.deepEqual(await uuids(), ['a', 'b']);
  await assert.rejects(failing.append({ key: KEY, entries: [prompt('b'), prompt('c')] }), /disk/);
  assert.deepEqual(await uuids(), ['a', 'b', 'c']);
});

test('the sessions of a store of transcripts are listed, described and deleted', async () => {
  const store = new Whole();
  const prepared = prepare(store);
  await prepared.registerSession({ ...KEY, userId: 'ann', title: 'T' });
  assert.equal(store.saves, 0);
  await prepared.append({ key: KEY, entries: [prompt('a')] });
  await prepared.append({ key: { ...KEY, subpath: 'x' }, entries: [prompt('sub')] });
  const again = prepare(store);
  const row = { sessionId: 's', mtime: 2e12, createdAt: 1e12, userId: 'ann', title: 'T' };
  assert.deepEqual(JSON.parse(JSON.stringify(await again.listSessions({ projectKey: 'p' }))), [
    row,
  ]);
  assert.deepEqual(JSON.parse(JSON.stringify(await again.getSession(KEY))), row);
  assert.deepEqual(await prepared.listSubkeys({ key: KEY }), ['x']);
  assert.equal(store.saved.size, 1);
  await prepared.delete({ key: KEY });
  assert.equal(await prepared.load({ key: KEY }), null);
  assert.deepEqual(await prepared.listSubkeys({ key: KEY }), []);
  assert.equal(await prepared.getSession(KEY), null);
  assert.deepEqual(names(prepare({ save() {}, load() {} })), [
    'append',
    'getSession',
    'listSubkeys',
    'load',
    'registerSession',
  ]);
});

test('what a store of transcripts must not give rejects', async () => {
  for (const value of [7, {}, { messages: {} }, { messages: [7] }, { messages: [null] }]) {
    const prepared = prepare({ save() {}, load: () => value });
    await assert.rejects(prepared.load({ key: KEY }));
    await assert.rejects(prepared.append({ key: KEY, entries: [prompt('a')] }));
  }
});

/** `FileSessionStore`: whole sessions in files under string ids, and entries under keys. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  FileSessionStore,
  InvalidConfigError,
  SessionStoreError,
  createFileSessionStore,
} from '../index.js';
import { nativeStoreOf } from '../js/session-store/brand.js';
import { runClean } from './support/boundary.js';
import { conformance } from './support/conformance.js';

const META = { cwd: '/work', model: 'glm' };

const user = (content, more) => ({ role: 'user', content, ...more });
const answer = (text) => ({ role: 'assistant', content: [{ type: 'text', text }] });
const contents = ({ messages }) => messages.map(({ content }) => content);

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'oak-file-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

async function opened(t) {
  return new FileSessionStore({ dir: await folder(t), durability: 'process' });
}

function failure(code, text = '', sessionId = undefined) {
  return (error) =>
    error instanceof SessionStoreError &&
    error.code === code &&
    error.message.includes(text) &&
    (sessionId === undefined || error.sessionId === sessionId);
}

conformance('FileSessionStore with keys', opened);

test('what is saved comes back, with dates and counts', async (t) => {
  const dir = await folder(t);
  const store = createFileSessionStore(dir);
  const messages = [user('hi', { uuid: 'u', extra: { a: [1] } }), answer('yo')];
  const before = Date.now();
  await store.save('s', messages, { ...META, summary: 'T', tag: undefined, firstPrompt: 'hi' });
  const { metadata, messages: loaded } = await store.load('s');
  assert.deepEqual(loaded, messages);
  const { createdAt, updatedAt, fileSize, ...known } = metadata;
  const counted = { id: 's', messageCount: 2 };
  assert.deepEqual(known, { ...META, ...counted, summary: 'T', firstPrompt: 'hi' });
  assert.ok(createdAt instanceof Date && updatedAt instanceof Date);
  assert.ok(createdAt >= new Date(before - 1) && updatedAt >= createdAt);
  const file = join(dir, 's', 'transcript.json');
  const { size, mode } = await stat(file);
  assert.equal(fileSize, size);
  assert.equal(mode & 0o777, 0o600);
  assert.equal((await stat(join(dir, 's'))).mode & 0o777, 0o700);
  const document = JSON.parse(await readFile(file, 'utf8'));
  assert.deepEqual(Object.keys(document), ['messages', 'metadata']);
  assert.equal(document.metadata.createdAt, createdAt.toISOString());
  assert.equal(await store.load('nobody'), null);
});

test('metadata that is not given stays, null clears', async (t) => {
  const store = await opened(t);
  await store.save('s', [user('a')], { ...META, summary: 'T', tag: 'x', gitBranch: 'main' });
  const { metadata: first } = await store.load('s');
  await store.save('s', [user('a'), answer('b')], { model: 'kimi', tag: null });
  const { metadata } = await store.load('s');
  assert.deepEqual(metadata.createdAt, first.createdAt);
  const { model, cwd, summary, tag, gitBranch, messageCount } = metadata;
  assert.deepEqual(
    { model, cwd, summary, tag, gitBranch, messageCount },
    {
      model: 'kimi',
      cwd: '/work',
      summary: 'T',
      tag: undefined,
      gitBranch: 'main',
      messageCount: 2,
    },
  );
  await store.save('s', [user('a')]);
  assert.deepEqual(contents(await store.load('s')), ['a']);
});

test('a part of the messages is loaded', async (t) => {
  const store = await opened(t);
  await store.save(
    's',
    [0, 1, 2, 3, 4].map((n) => user(String(n))),
    META,
  );
  for (const [options, expected] of [
    [{ limit: 2 }, ['3', '4']],
    [{ limit: 2, offset: 1 }, ['1', '2']],
    [{ offset: 3 }, ['3', '4']],
    [{ offset: 9 }, []],
    [{ tail: 1, offset: 1 }, ['4']],
    [{ limit: 0, offset: -1, tail: 0 }, ['0', '1', '2', '3', '4']],
  ]) {
    const loaded = await store.load('s', options);
    assert.deepEqual(contents(loaded), expected, JSON.stringify(options));
    assert.equal(loaded.metadata.messageCount, 5);
  }
  await assert.rejects(store.load('s', { limit: 1, tail: 1 }), failure('E_INVALID_ARGUMENT'));
});

test('sessions are listed, that changed last first', async (t) => {
  const store = await opened(t);
  assert.deepEqual(await store.list(), []);
  for (const id of ['a', 'b', 'wt-c']) {
    await store.save(id, [user(id)], META);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await store.append('a', [answer('more')]);
  const ids = async (options) => (await store.list(options)).map(({ id }) => id);
  assert.deepEqual(await ids(), ['a', 'b']);
  assert.deepEqual(await ids({ limit: 1 }), ['a']);
  assert.deepEqual(await ids({ includeWorktrees: true }), ['a', 'wt-c', 'b']);
  const [{ messageCount, updatedAt }] = await store.list();
  assert.equal(messageCount, 2);
  assert.ok(updatedAt instanceof Date);
});

test('a fork keeps what it is told to keep, and names its source', async (t) => {
  const store = await opened(t);
  const messages = [user('a', { uuid: 'ua' }), answer('b'), user('c', { id: 'ic' })];
  await store.save('s', messages, { ...META, summary: 'T', tag: 'x', firstPrompt: 'a' });
  const id = await store.fork('s');
  assert.match(id, /^[0-9a-f-]{36}$/);
  const { metadata } = await store.load(id);
  const { summary, tag, firstPrompt, parentSessionId } = metadata;
  assert.deepEqual(
    { summary, tag, firstPrompt, parentSessionId },
    { summary: 'Forked from session s', tag: undefined, firstPrompt: 'a', parentSessionId: 's' },
  );
  for (const [options, count] of [
    [{ upToMessageIndex: 2 }, 2],
    [{ upToMessageIndex: 0 }, 0],
    [{ upToMessageId: 'ua' }, 1],
    [{ upToMessageId: 'ic' }, 3],
  ]) {
    const given = { newSessionId: 'copy', overwrite: true, ...options };
    assert.equal(await store.fork('s', given), 'copy');
    assert.deepEqual(contents(await store.load('copy')), contents({ messages }).slice(0, count));
  }
  assert.equal(await store.fork('nobody'), null);
  const refused = [
    [{ newSessionId: 'copy' }, 'E_SESSION_EXISTS'],
    [{ newSessionId: 's', overwrite: true }, 'E_SESSION_EXISTS'],
    [{ upToMessageIndex: -1 }, 'E_INVALID_ARGUMENT'],
    [{ upToMessageIndex: 4 }, 'E_INVALID_ARGUMENT'],
    [{ upToMessageIndex: 1.5 }, 'E_INVALID_ARGUMENT'],
    [{ upToMessageId: 'nobody' }, 'E_INVALID_ARGUMENT'],
    [{ upToMessageId: 'ua', upToMessageIndex: 1 }, 'E_INVALID_ARGUMENT'],
    [{ newSessionId: 'a/b' }, 'E_INVALID_SESSION_ID'],
    [{ overwrite: 'yes' }, 'E_INVALID_ARGUMENT'],
  ];
  for (const [options, code] of refused) {
    await assert.rejects(store.fork('s', options), failure(code), JSON.stringify(options));
  }
  assert.deepEqual((await store.load('s')).messages, messages);
});

test('a session is renamed, tagged, looked for and deleted', async (t) => {
  const store = await opened(t);
  await store.save('s', [user('a')], META);
  await store.rename('s', 'T');
  await store.tag('s', 'x');
  let { metadata } = await store.load('s');
  assert.deepEqual([metadata.summary, metadata.tag], ['T', 'x']);
  await store.tag('s', null);
  ({ metadata } = await store.load('s'));
  assert.deepEqual([metadata.summary, metadata.tag], ['T', undefined]);
  assert.equal(await store.exists('s'), true);
  assert.equal(await store.delete('s'), true);
  assert.equal(await store.delete('s'), false);
  assert.equal(await store.exists('s'), false);
  await store.rename('s', 'T');
  await store.tag('s', 'x');
  assert.equal(await store.exists('s'), false);
});

test('messages are appended, also by many calls at once', async (t) => {
  const store = await opened(t);
  assert.equal(await store.append('s', [user('0')]), 1);
  const numbers = Array.from({ length: 10 }, (_, at) => String(at + 1));
  const counts = await Promise.all(numbers.map((number) => store.append('s', [user(number)])));
  assert.deepEqual(
    counts.sort((a, b) => a - b),
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  );
  const loaded = contents(await store.load('s'));
  assert.deepEqual(loaded.sort(), ['0', ...numbers].sort());
});

test('ids that are no names are refused by every method', async (t) => {
  const store = await opened(t);
  const text = {
    '': 'must not be empty',
    'a/b': "invalid character: '/'",
    'a\\b': "invalid character: '\\'",
    '..': "invalid character: '..'",
    '.': 'invalid character',
    '.hidden': 'invalid character',
    'a\0b': 'invalid character',
    'a\ud800': 'invalid character',
    ['x'.repeat(513)]: 'longer than 512',
  };
  for (const [id, message] of Object.entries(text)) {
    for (const call of [
      () => store.save(id, [], META),
      () => store.load(id),
      () => store.fork(id),
      () => store.delete(id),
      () => store.rename(id, 'T'),
      () => store.tag(id, null),
      () => store.exists(id),
      () => store.append(id, []),
    ]) {
      await assert.rejects(
        call(),
        failure('E_INVALID_SESSION_ID', message, id),
        JSON.stringify(id),
      );
    }
  }
  for (const id of [undefined, null, 7, []]) {
    await assert.rejects(store.load(id), failure('E_INVALID_ARGUMENT'));
    await assert.rejects(store.exists(id), failure('E_INVALID_ARGUMENT'));
  }
});

test('arguments of wrong shapes are refused', async (t) => {
  const store = await opened(t);
  const self = user('a');
  self.self = self;
  for (const [call, code] of [
    [() => store.save('s', 'x', META), 'E_INVALID_ARGUMENT'],
    [() => store.save('s', [1], META), 'E_INVALID_ARGUMENT'],
    [() => store.save('s', [null], META), 'E_INVALID_ARGUMENT'],
    [() => store.save('s', [], null), 'E_INVALID_ARGUMENT'],
    [() => store.save('s', [self], META), 'E_SERIALIZE_FAILED'],
    [() => store.append('s', [{ n: 1n }]), 'E_SERIALIZE_FAILED'],
    [() => store.append('s'), 'E_INVALID_ARGUMENT'],
    [() => store.load('s', { limit: 'x' }), 'E_INVALID_ARGUMENT'],
    [() => store.load('s', { limit: NaN }), 'E_INVALID_ARGUMENT'],
    [() => store.load('s', 7), 'E_INVALID_ARGUMENT'],
    [() => store.list({ limit: 1.5 }), 'E_INVALID_ARGUMENT'],
    [() => store.list({ includeWorktrees: 1 }), 'E_INVALID_ARGUMENT'],
    [() => store.rename('s'), 'E_INVALID_ARGUMENT'],
    [() => store.tag('s'), 'E_INVALID_ARGUMENT'],
  ]) {
    await assert.rejects(call(), failure(code), call.toString());
  }
  assert.equal(await store.exists('s'), false);
});

test('a transcript above the limit is not read', async (t) => {
  const dir = await folder(t);
  await new FileSessionStore(dir).save('s', [user('x'.repeat(5_000))], META);
  const store = new FileSessionStore({ dir, maxBytes: 4_000 });
  await assert.rejects(store.load('s'), failure('E_SESSION_TOO_LARGE', 'maxBytes', 's'));
});

test('options of wrong shapes are refused', () => {
  const wrong = [7, null, [], { dir: 7 }, { dir: ' ' }, '', { durability: 'never' }];
  const numbers = [0, -1, 1.5, NaN, Infinity, '1'].map((maxBytes) => ({ dir: 'x', maxBytes }));
  for (const options of [...wrong, ...numbers]) {
    assert.throws(() => new FileSessionStore(options), InvalidConfigError, JSON.stringify(options));
  }
  for (const durability of ['process', 'fsync', 'rename']) {
    new FileSessionStore({ dir: 'x', durability });
  }
});

test('without a folder the sessions lie in the home directory', async (t) => {
  const home = await folder(t);
  const source = `
    const { FileSessionStore } = await import('@cloudbase/open-agent-kernel');
    process.env.HOME = ${JSON.stringify(home)};
    await new FileSessionStore().save('s', [], {});
    console.log('done');
  `;
  assert.equal(await runClean(source), 'done');
  assert.ok(await stat(join(home, '.open-agent-sdk', 'sessions', 's')));
});

test('the kernel knows the store as its own, but no class that extends it', async (t) => {
  assert.ok(nativeStoreOf(await opened(t)));
  class Own extends FileSessionStore {}
  assert.equal(nativeStoreOf(new Own(await folder(t))), undefined);
});

/** Agents on the file store: documents of the older kernel, and documents for its readers. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { FileSessionStore } from '../index.js';
import { tool } from './support/boundary.js';
import { conversationIn, storedAgents, temporaryFolder } from './support/sessions.js';

const METADATA = {
  id: 'my-session',
  cwd: '/project',
  model: 'glm-5.1',
  createdAt: '2026-01-02T03:04:05.678Z',
  updatedAt: '2026-01-02T03:04:06.000Z',
  messageCount: 4,
  summary: 'Code review',
};
const MESSAGES = [
  { role: 'user', content: 'Read main.swift.' },
  {
    role: 'assistant',
    content: [
      { type: 'text', text: 'Reading.' },
      { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: 'main.swift' } },
    ],
  },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'print(1)' }] },
  { role: 'assistant', content: [{ type: 'text', text: 'It prints 1.' }] },
];

/** Writes a session as a program would that knows only the document of the older kernel. */
function writeByHand(folder) {
  mkdirSync(join(folder, 'my-session'), { recursive: true, mode: 0o700 });
  const text = JSON.stringify({ metadata: METADATA, messages: MESSAGES });
  writeFileSync(join(folder, 'my-session', 'transcript.json'), text, { mode: 0o600 });
}

/** Reads a session as a program would that knows only that document. */
function readByHand(folder, id) {
  const file = join(folder, id, 'transcript.json');
  const document = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(Object.keys(document).sort(), ['messages', 'metadata']);
  const { metadata, messages } = document;
  for (const key of ['id', 'cwd', 'model']) assert.equal(typeof metadata[key], 'string', key);
  for (const key of ['createdAt', 'updatedAt']) {
    assert.match(metadata[key], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, key);
  }
  assert.equal(metadata.id, id);
  assert.equal(metadata.messageCount, messages.length);
  for (const { role, content } of messages) {
    assert.ok(role === 'user' || role === 'assistant');
    assert.ok(typeof content === 'string' || Array.isArray(content));
  }
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(statSync(join(folder, id)).mode & 0o777, 0o700);
  return document;
}

const GIVEN = {
  'the store object': (folder) => ({
    sessionStore: new FileSessionStore(folder),
    session: undefined,
  }),
  'the database': (path) => ({ session: { database: 'file', path } }),
};

for (const [what, configFor] of Object.entries(GIVEN)) {
  test(`${what}: a hand-made transcript.json goes on`, async (t) => {
    const folder = temporaryFolder(t);
    writeByHand(folder);
    const { emulator, newAgent } = await storedAgents(t, undefined, configFor(folder));
    const agent = newAgent();
    const session = await agent.resumeSession('my-session', { userId: 'ann' });
    await session.prompt('And then?');
    assert.deepEqual(conversationIn(emulator.requests[0]), [
      'user: Read main.swift.',
      'assistant: Reading. tool_use',
      'user: tool_result',
      'assistant: It prints 1.',
      'user: And then?',
    ]);
    const history = await session.getHistory();
    assert.equal(history.length, 4);
    await agent.close();
    const { metadata, messages } = readByHand(folder, 'my-session');
    assert.equal(metadata.createdAt, METADATA.createdAt);
    assert.equal(metadata.summary, METADATA.summary);
    assert.deepEqual(
      messages.slice(0, 4).map(({ role, content }) => ({ role, content })),
      MESSAGES,
    );
    assert.equal(messages.length, 6);
    const again = newAgent();
    await (await again.resumeSession('my-session')).prompt('More.');
    assert.equal(emulator.requests.at(-1).body.messages.length, 7);
  });
}

test('what an agent stores in a FileSessionStore is found by its methods', async (t) => {
  const folder = temporaryFolder(t);
  const store = new FileSessionStore(folder);
  const rules = [
    {
      when: { hasToolResult: false, user: 'pay' },
      reply: { text: 'Wait.', toolCalls: [{ name: 'pay', input: {} }] },
    },
    { reply: 'Done.' },
  ];
  const tools = [tool('pay', () => 'paid')];
  const { newAgent } = await storedAgents(t, undefined, { rules, tools, sessionStore: store });
  const agent = newAgent({ sessionId: 'my-session' });
  const session = await agent.startSession({ userId: 'ann' });
  await session.prompt('pay');
  await session.close();
  const { messages } = readByHand(folder, 'my-session');
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'user', 'assistant'],
  );
  assert.deepEqual(
    messages[1].content.map(({ type }) => type),
    ['text', 'tool_use'],
  );
  const loaded = await store.load('my-session');
  assert.equal(loaded.messages.length, 4);
  assert.ok(loaded.metadata.createdAt instanceof Date);
  const [listed] = await store.list();
  assert.equal(listed.id, 'my-session');
  assert.equal(listed.firstPrompt, 'pay');
  const copy = await store.fork('my-session', { upToMessageIndex: 2 });
  const forked = await newAgent().resumeSession(copy, { userId: 'ann' });
  assert.equal((await forked.getHistory()).length, 2);
});

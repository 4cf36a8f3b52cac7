/** `getHistory` and `clearHistory`, through an agent. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError } from '../index.js';
import { assertRefused, errorOf, setUp, tool } from './support/boundary.js';
import { stored, storedAgents } from './support/sessions.js';

const CALLING = [
  {
    when: { hasToolResult: false, user: 'weather' },
    reply: {
      thinking: 'Hm.',
      text: 'Let me look. ',
      toolCalls: [{ name: 'look', input: { at: 'home' } }],
    },
  },
  { reply: 'It rains.' },
];
const look = () => tool('look', () => ({ sky: 'grey' }));

/** One test for a session without a store, and one for each database. */
function everywhere(name, work) {
  test(`no store: ${name}`, async (t) => {
    const { session, agent } = await setUp(t, { rules: CALLING, tools: [look()] });
    await work(session, agent);
  });
  stored(name, async (t, settings) => {
    const options = { rules: CALLING, tools: [look()] };
    const { newAgent } = await storedAgents(t, settings, options);
    const agent = newAgent();
    await work(await agent.startSession({ userId: 'ann' }), agent);
  });
}

everywhere('a turn is the message of the user and one record of the assistant', async (session) => {
  await session.prompt('weather');
  const history = await session.getHistory();
  assert.equal(history.nextCursor, null);
  const [user, assistant] = history;
  assert.equal(history.length, 2);
  assert.deepEqual([user.role, user.conversationId, user.status], ['user', session.id, 'done']);
  assert.deepEqual(user.parts, [{ type: 'text', text: 'weather' }]);
  assert.ok(assistant.createdAt >= user.createdAt && user.createdAt > 1e12);
  const { toolUseId } = assistant.parts[2];
  assert.deepEqual(assistant.parts, [
    { type: 'thinking', text: 'Hm.' },
    { type: 'text', text: 'Let me look. ' },
    { type: 'tool_call', toolUseId, toolName: 'look', input: { at: 'home' }, status: 'done' },
    { type: 'tool_result', toolUseId, output: '{"sky":"grey"}', isError: false, status: 'done' },
    { type: 'text', text: 'It rains.' },
  ]);
});

everywhere('pages join to the whole, whatever is said meanwhile', async (session) => {
  for (const text of ['weather', 'two', 'three']) await session.prompt(text);
  const whole = await session.getHistory();
  assert.equal(whole.length, 6);
  const pages = [];
  let cursor;
  do {
    const page = await session.getHistory({ limit: 1, cursor });
    assert.equal(page.length, 1);
    pages.unshift(...page);
    cursor = page.nextCursor;
    if (pages.length === 2) await session.prompt('four');
  } while (cursor !== null);
  assert.deepEqual(pages, [...whole]);
});

everywhere('a cleared history stays empty, and the model still knows', async (session, agent) => {
  await session.prompt('weather');
  await session.clearHistory();
  assert.deepEqual([...(await session.getHistory())], []);
  await session.prompt('again');
  const [first] = await session.getHistory();
  assert.equal(first.parts[0].text, 'again');
  assert.equal((await session.getHistory()).length, 2);
  assert.ok(agent);
});

everywhere('wrong options are refused with the field', async (session) => {
  const wrong = [
    [{ limit: -1 }, 'limit'],
    [{ limit: 'x' }, 'limit'],
    [{ cursor: 'nonsense?' }, 'cursor'],
    [{ before: 'now' }, 'before'],
    [{ page: 1 }, 'page'],
  ];
  for (const [options, field] of wrong) {
    const error = await errorOf(session.getHistory(options));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', field);
  }
});

test('a tool can read the history of its own session', async (t) => {
  let read;
  const { session } = await setUp(t, {
    rules: CALLING,
    tools: [tool('look', async () => (read = await session.getHistory()).length)],
  });
  await session.prompt('weather');
  assert.deepEqual(
    read.map(({ role }) => role),
    ['user', 'assistant'],
  );
  assert.equal(read[1].parts.at(-1).status, 'executing');
});

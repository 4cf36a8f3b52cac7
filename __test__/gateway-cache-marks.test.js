import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, thinking, toolCalls } from '../emulator/index.js';
import { gatewayFor, tool, unmarked } from './support/gateway.js';

const THREE_CALLS = toolCalls([{ name: 'peek' }, { name: 'peek' }, { name: 'peek' }], {
  thinking: 'Three at once.',
});
const SCRIPT = {
  rules: [
    { when: { hasToolResult: true }, reply: thinking('Good.', 'All three: {{toolResult}}') },
    { when: { user: 'look' }, reply: THREE_CALLS },
    { reply: text('Answer {{turn}}.') },
  ],
  systemPrompt: 'Be brief.',
  tools: [tool('peek', () => 'seen', { readOnly: true }), tool('act', () => 'done')],
};
const PROMPTS = ['one', 'look', 'three', 'look', 'five'];

/** Everything in a body that has a mark, with its place. */
function marks(value, path = '') {
  if (typeof value !== 'object' || value === null) return [];
  const own = value.cache_control === undefined ? [] : [{ path, block: value }];
  return own.concat(
    Object.entries(value).flatMap(([key, item]) => marks(item, path ? `${path}.${key}` : key)),
  );
}

async function bodiesOf(t, more) {
  const { send, emulator } = await gatewayFor(t, { ...SCRIPT, ...more });
  for (const prompt of PROMPTS) await send(prompt);
  return emulator.requests.map(({ body }) => body);
}

test('FC-B11 at most four marks, on the system text and on the last block', async (t) => {
  const bodies = await bodiesOf(t);
  assert.equal(bodies.length, 7);
  for (const body of bodies) {
    const found = marks(body);
    assert.ok(found.length >= 1 && found.length <= 4, `${found.length} marks`);
    for (const { block } of found) {
      assert.deepEqual(block.cache_control, { type: 'ephemeral' });
      assert.ok(!['thinking', 'redacted_thinking'].includes(block.type));
      assert.ok(block.type !== 'text' || block.text.trim() !== '');
    }
    const last = body.messages.length - 1;
    const block = body.messages[last].content.length - 1;
    const paths = found.map(({ path }) => path);
    assert.ok(paths.includes('system.0'));
    assert.ok(paths.includes(`messages.${last}.content.${block}`), paths.join());
  }
});

test('FC-B11 three parallel results carry one mark together', async (t) => {
  const bodies = await bodiesOf(t);
  const withResults = bodies.filter(
    ({ messages }) => messages.at(-1).content[0].type === 'tool_result',
  );
  assert.equal(withResults.length, 2);
  for (const { messages } of withResults) assert.equal(marks(messages).length, 1);
});

test('FC-B11 the prefix of a request stays the same over five turns, byte for byte', async (t) => {
  const bodies = (await bodiesOf(t)).map(unmarked);
  bodies.slice(1).forEach((body, at) => {
    const before = bodies[at];
    const prefix = { ...body, messages: body.messages.slice(0, before.messages.length) };
    assert.equal(JSON.stringify(prefix), JSON.stringify(before));
  });
});

test('FC-B11 cacheMarks: false sets none', async (t) => {
  const bodies = await bodiesOf(t, { model: { cacheMarks: false } });
  for (const body of bodies) assert.deepEqual(marks(body), []);
});

test('FC-B11 tools are sorted by name, however they are given', async (t) => {
  const bodies = await bodiesOf(t, { tools: SCRIPT.tools.toReversed() });
  for (const { tools } of bodies) {
    assert.deepEqual(
      tools.map(({ name }) => name),
      ['act', 'peek'],
    );
  }
});

test('FC-B11 a pause that ends in thinking moves the mark to what may carry it', async (t) => {
  const blocks = [
    { type: 'text', text: 'So far.' },
    { type: 'redacted_thinking', data: 'b3BhcXVl' },
    { type: 'text', text: 'And on.' },
  ];
  const { send, emulator } = await gatewayFor(t, {
    rules: [{ times: 1, reply: { blocks, stopReason: 'pause_turn' } }, { reply: 'Done.' }],
  });
  await send('hi');
  assert.deepEqual(
    marks(emulator.requests[1].body.messages).map(({ path }) => path),
    ['1.content.2'],
  );
});

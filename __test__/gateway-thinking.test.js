import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, thinking, toolCall } from '../emulator/index.js';
import { idleOf, restartsOf, textOf, thoughtOf } from './support/gateway-elements.js';
import { gatewayFor, textIn, tool } from './support/gateway.js';

const THOUGHT = 'Trailing space, 北京😀, a "quote" and \\n: \n\n ';
const SIGNATURE = 'c2lnbmF0dXJlLSs/PT0=';
const NOW = tool('now', () => 'noon');

const thoughtsIn = ({ content }) => content.filter(({ type }) => type.endsWith('thinking'));

test('FC-B5 signed thinking comes back byte for byte while the tool loop runs', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: thinking('Then so.', 'Done.') },
      { reply: toolCall('now', {}, { thinking: THOUGHT, signature: SIGNATURE, text: 'Let me.' }) },
    ],
    knobs: { textChunk: 3, splitBytes: 7 },
    tools: [NOW],
  });
  const elements = await send('time?');
  assert.equal(thoughtOf(elements), `${THOUGHT}Then so.`);
  const { content } = messages(1)[1];
  assert.deepEqual(content[0], { type: 'thinking', thinking: THOUGHT, signature: SIGNATURE });
  assert.deepEqual(
    content.map(({ type }) => type),
    ['thinking', 'text', 'tool_use'],
  );
});

test('FC-B5 thinking of several requests of one loop is kept in its place', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { when: { turn: 0 }, reply: toolCall('now', {}, { thinking: 'one' }) },
      { when: { turn: 1 }, reply: toolCall('now', {}, { thinking: 'two' }) },
      { reply: thinking('three', 'Done.') },
    ],
    tools: [NOW],
  });
  await send('time?');
  const answers = messages(-1).filter(({ role }) => role === 'assistant');
  assert.deepEqual(
    answers.map((answer) => thoughtsIn(answer)[0].thinking),
    ['one', 'two'],
  );
});

test('FC-B5 redacted thinking comes back unchanged', async (t) => {
  const redacted = { type: 'redacted_thinking', data: 'b3BhcXVl' };
  const blocks = [redacted, { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} }];
  const { send, messages } = await gatewayFor(t, {
    rules: [{ when: { hasToolResult: true }, reply: 'Done.' }, { reply: { blocks } }],
    tools: [NOW],
  });
  await send('time?');
  assert.deepEqual(messages(1)[1].content[0], redacted);
});

test('FC-B5 a gateway that never signs works across turns', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: thinking('So.', 'Done.', { signature: null }) },
      { when: { user: 'time' }, reply: toolCall('now', {}, { thinking: 'Hm.', signature: null }) },
      { reply: thinking('Hm, hm.', 'Answer.', { signature: null }) },
    ],
    tools: [NOW],
  });
  for (const prompt of ['hi', 'time?', 'more']) {
    const elements = await send(prompt);
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    // Seen by the user, never sent.
    assert.match(thoughtOf(elements), /^(Hm|So)/);
  }
  assert.deepEqual(messages(-1).flatMap(thoughtsIn), []);
  assert.equal(textIn(messages(-1)[1]), 'Answer.');
});

test('FC-B5 a stream cut before the signature leaves nothing behind', async (t) => {
  // message_start, block start and the thought itself; the signature would be next.
  const cut = { rule: thinking('Half a thought', 'x'), knobs: { truncateAfter: 4, textChunk: 7 } };
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: cut.rule, knobs: cut.knobs },
      { reply: thinking('Whole.', 'Done.') },
    ],
  });
  const elements = await send('hi');
  assert.equal(restartsOf(elements).length, 1);
  assert.equal(thoughtOf(elements), 'Whole.');
  await send('more');
  assert.doesNotMatch(JSON.stringify(messages(-1)), /Half a thought/);
});

test("FC-B5 the same with restart: 'never': the next request is valid", async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: thinking('Half a thought', 'x'), knobs: { resetAfter: 4, textChunk: 7 } },
      { reply: thinking('Whole.', 'Done.') },
    ],
    model: { restart: 'never' },
  });
  const elements = await send('hi');
  assert.equal(idleOf(elements).stopReason, 'error');
  assert.equal(thoughtOf(elements), 'Half a thought');
  assert.equal(textOf(await send('more')), 'Done.');
  assert.deepEqual(messages(-1).flatMap(thoughtsIn), []);
});

test('FC-B5 a stream stopped by the user within a thought leaves a valid session', async (t) => {
  const { session, send, messages } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: thinking('Half a thought', 'x'), knobs: { stallAfter: 3, textChunk: 4 } },
      { reply: text('Done.') },
    ],
  });
  for await (const { sessionUpdate } of session.send('hi')) {
    if (sessionUpdate === 'agent_thought_chunk') break;
  }
  assert.equal(textOf(await send('more')), 'Done.');
  assert.deepEqual(messages(-1).flatMap(thoughtsIn), []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall } from '../emulator/index.js';
import { AcpStreamAdapter } from '../index.js';
import { Mirror, adapterFor, ofType } from './support/format-adapter.js';
import { tool } from './support/gateway.js';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const COUNTS = {
  startUsage: { input_tokens: 10, output_tokens: 1 },
  usage: { input_tokens: 10, output_tokens: 5 },
};
const TURN = {
  rules: [
    { when: { hasToolResult: true }, reply: text(['Do', 'ne.'], { id: 'msg_2', ...COUNTS }) },
    {
      reply: {
        id: 'msg_1',
        ...COUNTS,
        thinking: 'Hm.',
        text: ['Let ', 'me.'],
        toolCalls: [{ id: 'toolu_1', name: 'save', input: { path: 'a' } }],
      },
    },
  ],
  tools: [tool('save', () => ({ saved: 1 }))],
};
const PROTOCOLS = ['anthropic', 'openai'];

for (const protocol of PROTOCOLS) {
  test(`adapter: gets the messages of the Claude Agent SDK in order (${protocol})`, async (t) => {
    const mirror = new Mirror();
    const { read } = await adapterFor(t, mirror, { ...TURN, model: { protocol } });
    const messages = await read('go');
    assert.deepEqual(messages, mirror.messages);
    const parts = messages.map(({ type, subtype, event, message }) =>
      type === 'stream_event'
        ? event.type
        : [type, subtype ?? message?.content.map((block) => block.type)].flat().join(' '),
    );
    const same = (part, at) => part === 'content_block_delta' && part === parts[at - 1];
    assert.deepEqual(
      parts.filter((part, at) => !same(part, at)),
      [
        'system init',
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
        'assistant thinking',
        'assistant text',
        'assistant tool_use',
        'user tool_result',
        'message_start',
        'content_block_start',
        'content_block_delta',
        'content_block_stop',
        'message_delta',
        'message_stop',
        'assistant text',
        'result success',
      ],
    );
  });

  test(`adapter: the messages have the fields of the SDK (${protocol})`, async (t) => {
    const { read, session } = await adapterFor(t, new Mirror(), { ...TURN, model: { protocol } });
    const messages = await read('go');
    for (const message of messages) {
      assert.match(message.uuid, UUID);
      assert.equal(message.session_id, session.id);
    }
    assert.equal(new Set(messages.map(({ uuid }) => uuid)).size, messages.length);
    for (const message of messages.filter(({ type }) => !/system|result/.test(type))) {
      assert.equal(message.parent_tool_use_id, null);
    }
    const [, , { message }] = ofType(messages, 'assistant');
    const { usage, ...answer } = message;
    assert.deepEqual(answer, {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'glm',
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'save', input: { path: 'a' } }],
      stop_reason: 'tool_use',
    });
    assert.deepEqual([usage.input_tokens, usage.output_tokens], [10, 5]);
    const [user] = ofType(messages, 'user');
    assert.equal(user.message.role, 'user');
    const [{ is_error: isError, ...block }] = user.message.content;
    assert.deepEqual(block, {
      type: 'tool_result',
      tool_use_id: 'toolu_1',
      content: '{"saved":1}',
    });
    assert.ok(!isError);
    assert.deepEqual(user.tool_use_result, { saved: 1 });
    assert.ok(!Number.isNaN(Date.parse(user.timestamp)));
  });

  test(`adapter: the last message sums up the run (${protocol})`, async (t) => {
    const { read, session } = await adapterFor(t, new Mirror(), { ...TURN, model: { protocol } });
    const messages = await read('go');
    assert.equal(ofType(messages, 'result').length, 1);
    const { uuid, duration_ms: ms, duration_api_ms: apiMs, usage, ...result } = messages.at(-1);
    assert.match(uuid, UUID);
    assert.ok(ms >= 0 && apiMs >= 0);
    assert.deepEqual([usage.input_tokens, usage.output_tokens], [20, 10]);
    assert.deepEqual(result, {
      type: 'result',
      subtype: 'success',
      is_error: false,
      num_turns: 2,
      result: 'Done.',
      stop_reason: 'end_turn',
      total_cost_usd: 0,
      modelUsage: {},
      permission_denials: [],
      session_id: session.id,
    });
  });

  test(`adapter: events and answers are joined by their ids (${protocol})`, async (t) => {
    const same = { reply: text(['Hel', 'lo'], { id: 'msg_same' }) };
    const rules = [TURN.rules[0], { when: { user: 'go' }, reply: TURN.rules[1].reply }, same];
    const { read } = await adapterFor(t, new Mirror(), { ...TURN, rules, model: { protocol } });
    const seen = [];
    // A gateway may use an id twice: both sides must call the second one alike.
    for (const prompt of ['go', 'one', 'two', 'go']) {
      const messages = await read(prompt);
      const events = ofType(messages, 'stream_event').map(({ event }) => event);
      const starts = events.filter(({ type }) => type === 'message_start');
      const answers = ofType(messages, 'assistant').map(({ message }) => message);
      const ids = starts.map(({ message }) => message.id);
      assert.deepEqual(ids, [...new Set(answers.map(({ id }) => id))]);
      seen.push(...ids);
      const begun = events.map((event) => event.content_block?.id).filter(Boolean);
      const called = answers.flatMap(({ content }) => content.map(({ id }) => id)).filter(Boolean);
      const answered = ofType(messages, 'user').map((user) => user.message.content[0].tool_use_id);
      assert.deepEqual([begun, answered], [called, called]);
    }
    assert.equal(new Set(seen).size, seen.length);
  });
}

test('adapter: the answers joined from events are the answers', async (t) => {
  const { read } = await adapterFor(t, new Mirror(), TURN);
  const messages = await read('go');
  const blocks = new Map();
  for (const { event } of ofType(messages, 'stream_event')) {
    if (event.type === 'message_start') blocks.clear();
    if (event.type === 'content_block_start') blocks.set(event.index, { ...event.content_block });
    const block = blocks.get(event.index);
    const delta = event.delta ?? {};
    if (delta.type === 'text_delta') block.text += delta.text;
    if (delta.type === 'thinking_delta') block.thinking += delta.thinking;
    if (delta.type === 'signature_delta') block.signature = delta.signature;
  }
  const last = ofType(messages, 'assistant').at(-1);
  assert.deepEqual([...blocks.values()], last.message.content);
});

test('adapter: is told whose run it is', async (t) => {
  const mirror = new Mirror();
  const { agent, read } = await adapterFor(t, mirror, { rules: 'ok' });
  await read('one');
  await read('two');
  const other = await agent.startSession({ userId: 'bob', conversationId: 'conv_b' });
  for await (const message of other.send('three')) assert.equal(message.session_id, 'conv_b');
  const [first, second, third] = mirror.contexts;
  assert.deepEqual(Object.keys(first).sort(), ['conversationId', 'sessionId', 'turnId', 'userId']);
  assert.equal(first.conversationId, first.sessionId);
  assert.deepEqual([first.userId, third.userId], ['ann', 'bob']);
  assert.equal(third.sessionId, 'conv_b');
  assert.equal(new Set([first, second, third].map(({ turnId }) => turnId)).size, 3);
});

const FAILURES = {
  error_during_execution: [{ rules: { status: 401 } }, /401/],
  error_max_turns: [
    { rules: toolCall('save', {}), tools: TURN.tools, limits: { maxTurns: 1 } },
    /max_turns/,
  ],
  error_max_budget_usd: [
    { rules: toolCall('save', {}), tools: TURN.tools, limits: { maxTokensPerTurn: 1 } },
    /budget/,
  ],
};

for (const [subtype, [options, words]] of Object.entries(FAILURES)) {
  test(`adapter: a run that does not succeed ends with ${subtype}`, async (t) => {
    const { read } = await adapterFor(t, new Mirror(), options);
    const result = (await read('go')).at(-1);
    assert.deepEqual([result.type, result.subtype, result.is_error], ['result', subtype, true]);
    assert.equal(result.errors.length, 1);
    assert.match(result.errors[0], words);
    assert.equal(result.result, undefined);
    assert.equal(typeof result.usage.input_tokens, 'number');
  });
}

test('adapter: the exported adapter makes JSON-RPC of a whole run', async (t) => {
  const { read, session } = await adapterFor(t, new AcpStreamAdapter(), TURN);
  for (const prompt of ['one', 'two']) {
    const elements = await read(prompt);
    assert.ok(elements.every(({ method }) => method === 'session/update'));
    assert.ok(elements.every(({ params }) => params.sessionId === session.id));
    const updates = elements.map(({ params }) => params.update);
    const chunks = updates.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
    // Each text once, though whole answers follow their pieces.
    assert.deepEqual(
      chunks.map(({ content }) => content.text),
      ['Let ', 'me.', 'Do', 'ne.'],
    );
    const calls = updates.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call');
    assert.equal(calls.length, 1);
    const end = updates.find(({ status }) => status === 'completed');
    assert.deepEqual([end.toolCallId, end.rawOutput], [calls[0].toolCallId, '{"saved":1}']);
    assert.deepEqual(
      updates.slice(-2).map(({ sessionUpdate }) => sessionUpdate),
      ['usage_update', 'agent_phase'],
    );
    assert.deepEqual(updates.at(-1).stopReason, 'end_turn');
  }
});

test('adapter: prompt() has its own result, without the adapter', async (t) => {
  const { session } = await adapterFor(t, () => assert.fail('not asked'), { rules: 'Hello.' });
  assert.equal((await session.prompt('hi')).text, 'Hello.');
});

test('adapter: a broken stream is not repeated once the adapter saw text', async (t) => {
  const { read, emulator } = await adapterFor(t, new AcpStreamAdapter(), {
    rules: [{ reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } }],
  });
  const updates = (await read('go')).map(({ params }) => params.update);
  assert.equal(emulator.requests.length, 1);
  assert.equal(updates.at(-1).stopReason, 'error');
  assert.equal(updates.filter(({ level }) => level === 'error').length, 1);
});

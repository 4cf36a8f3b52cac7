import assert from 'node:assert/strict';
import { test } from 'node:test';

import { AcpStreamAdapter } from '../index.js';
import { adapted, event, result, toolResult } from './support/format-sdk-messages.js';

const SESSION = 'conv_fixture';
const INTERRUPT = {
  __OAK_INTERRUPT__: true,
  conversationId: SESSION,
  toolUseId: 'toolu_fixture_2',
  toolName: 'mcp__custom__danger',
  toolInput: { text: 'delete' },
  hints: { suggestedScopes: ['once', 'session'] },
  message: 'paused',
};
const ASK_USER = { __OAK_ASK_USER__: true, question: 'Which?', options: ['a', 'b'] };

/** The messages of the example whose result the kernel before this one documented. */
const FIXTURE = [
  { type: 'system', subtype: 'init', session_id: SESSION },
  event({ type: 'message_start', message: { id: 'msg_fixture' } }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '你好，' } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ACP。' } }),
  event({ type: 'content_block_stop', index: 0 }),
  start(1, 'toolu_fixture_1', 'mcp__custom__echo', { text: 'hello' }),
  event({ type: 'content_block_stop', index: 1 }),
  start(2, 'toolu_fixture_2', 'mcp__custom__danger', {}),
  piece(2, '{"text":'),
  piece(2, '"delete"}'),
  event({ type: 'content_block_stop', index: 2 }),
  event({ type: 'message_stop' }),
  {
    type: 'assistant',
    message: {
      id: 'msg_fixture',
      role: 'assistant',
      content: [{ type: 'text', text: '你好，ACP。' }],
    },
    parent_tool_use_id: null,
  },
  toolResult('toolu_fixture_1', 'echo: hello'),
  toolResult('toolu_fixture_2', JSON.stringify(INTERRUPT), true),
  toolResult('toolu_fixture_3', JSON.stringify(ASK_USER), true),
  result({ usage: { input_tokens: 100, output_tokens: 50 } }),
];

function start(index, id, name, input) {
  return event({
    type: 'content_block_start',
    index,
    content_block: { type: 'tool_use', id, name, input },
  });
}

function piece(index, text) {
  const delta = { type: 'input_json_delta', partial_json: text };
  return event({ type: 'content_block_delta', index, delta });
}

const chunk = (text) => ({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
const call = (toolCallId, title, rawInput) => ({
  sessionUpdate: 'tool_call',
  toolCallId,
  title,
  kind: 'other',
  status: 'in_progress',
  rawInput,
});
const input = (rawInput) => ({
  sessionUpdate: 'tool_call_update',
  toolCallId: 'toolu_fixture_2',
  status: 'in_progress',
  rawInput,
});
const wrap = (update) => ({
  jsonrpc: '2.0',
  method: 'session/update',
  params: { sessionId: SESSION, update },
});

const WANTED = [
  wrap(chunk('你好，')),
  wrap(chunk('ACP。')),
  wrap(call('toolu_fixture_1', 'echo', { text: 'hello' })),
  wrap(call('toolu_fixture_2', 'danger', {})),
  wrap(input('{"text":')),
  wrap(input({ text: 'delete' })),
  wrap(input({ text: 'delete' })),
  wrap({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_fixture_1',
    status: 'completed',
    rawOutput: 'echo: hello',
  }),
  {
    jsonrpc: '2.0',
    id: 'conv_fixture:toolu_fixture_2',
    method: 'session/request_permission',
    params: {
      sessionId: SESSION,
      toolCall: {
        toolCallId: 'toolu_fixture_2',
        // The raw name of the tool.
        title: 'mcp__custom__danger',
        kind: 'other',
        status: 'pending',
        rawInput: { text: 'delete' },
        _meta: { assistantMessageId: 'turn_1' },
      },
      options: [
        { optionId: 'allow_always', name: 'Always allow', kind: 'allow_always' },
        { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
        { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
      ],
    },
  },
  wrap({
    sessionUpdate: 'tool_call_update',
    toolCallId: 'toolu_fixture_3',
    status: 'failed',
    rawOutput: JSON.stringify(ASK_USER),
    content: [{ type: 'content', content: { type: 'text', text: JSON.stringify(ASK_USER) } }],
  }),
  wrap({ sessionUpdate: 'usage_update', used: 150, size: 0 }),
  wrap({ sessionUpdate: 'agent_phase', phase: 'idle' }),
];

test('adapter: the documented fixture gives its twelve elements', async () => {
  const elements = await adapted(FIXTURE, SESSION);
  assert.equal(elements.length, 12);
  const { timestamp, ...idle } = elements.at(-1).params.update;
  assert.ok(Math.abs(Date.now() - timestamp) < 60_000);
  elements[11] = wrap(idle);
  assert.deepEqual(elements, WANTED);
});

test('adapter: each run has its own state', async () => {
  const adapter = new AcpStreamAdapter();
  const [first, second] = await Promise.all([
    adapted(FIXTURE, SESSION, adapter),
    adapted(FIXTURE, SESSION, adapter),
  ]);
  assert.deepEqual([first.length, second.length], [12, 12]);
});

test('adapter: the id of a request names session and call', () => {
  assert.equal(AcpStreamAdapter.requestId('conv', 'toolu_1'), 'conv:toolu_1');
});

test('adapter: the options of a request are its own', async () => {
  const [one, two] = await Promise.all([adapted(FIXTURE, SESSION), adapted(FIXTURE, SESSION)]);
  one[8].params.options[0].name = 'changed';
  assert.equal(two[8].params.options[0].name, 'Always allow');
  const third = await adapted(FIXTURE, SESSION);
  assert.equal(third[8].params.options[0].name, 'Always allow');
});

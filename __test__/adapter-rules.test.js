import assert from 'node:assert/strict';
import { test } from 'node:test';

import { AcpStreamAdapter } from '../index.js';
import {
  adapted,
  assistant,
  event,
  result,
  toolResult,
  updatesOf,
} from './support/format-sdk-messages.js';

const delta = (text, parent) =>
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }, parent);
const begins = (id) => event({ type: 'message_start', message: { id } });
const textBlock = (text) => [{ type: 'text', text }];
const callBlock = (id, name = 'mcp__custom__echo', input = { a: 1 }) => ({
  type: 'tool_use',
  id,
  name,
  input,
});
const callStarts = (index, block, parent) =>
  event({ type: 'content_block_start', index, content_block: block }, parent);

async function textsOf(messages, options) {
  const elements = await adapted(messages, 'conv', new AcpStreamAdapter(options));
  return updatesOf(elements)
    .filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk')
    .map(({ content }) => content.text);
}

test('adapter: a whole text is left out when its pieces were streamed', async () => {
  const messages = [
    begins('m1'),
    delta('Hel'),
    delta('lo'),
    assistant(textBlock('Hello'), { id: 'm1' }),
  ];
  assert.deepEqual(await textsOf(messages), ['Hel', 'lo']);
  assert.deepEqual(await textsOf(messages, {}), ['Hel', 'lo']);
  assert.deepEqual(await textsOf(messages, { dedupeAssistantText: true }), ['Hel', 'lo']);
});

test('adapter: dedupeAssistantText: false tells both', async () => {
  const messages = [begins('m1'), delta('Hi'), assistant(textBlock('Hi'), { id: 'm1' })];
  assert.deepEqual(await textsOf(messages, { dedupeAssistantText: false }), ['Hi', 'Hi']);
});

test('adapter: texts are left out by message, not by run', async () => {
  const messages = [
    begins('m1'),
    delta('streamed'),
    assistant(textBlock('streamed'), { id: 'm1' }),
    // This message came without pieces.
    assistant(textBlock('whole'), { id: 'm2' }),
  ];
  assert.deepEqual(await textsOf(messages), ['streamed', 'whole']);
});

test('adapter: a text without pieces is told whole', async () => {
  assert.deepEqual(await textsOf([assistant(textBlock('Hello'))]), ['Hello']);
  assert.deepEqual(await textsOf([assistant(textBlock(''))]), []);
});

test('adapter: thinking is told as it grows, and its block is ignored', async () => {
  const thought = { type: 'thinking_delta', thinking: 'Hm' };
  const elements = await adapted([
    event({ type: 'content_block_delta', index: 0, delta: thought }),
    event({ type: 'content_block_delta', index: 0, delta: { ...thought, thinking: '' } }),
    assistant([{ type: 'thinking', thinking: 'Hm', signature: 's' }]),
  ]);
  assert.deepEqual(updatesOf(elements), [
    { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm' } },
  ]);
});

test('adapter: a call of a whole answer is announced once, then refined', async () => {
  const elements = await adapted([
    assistant([callBlock('t1')]),
    callStarts(0, callBlock('t2', 'mcp__kernel__Ask', {})),
    assistant([callBlock('t2', 'mcp__kernel__Ask', { q: 'x' })]),
  ]);
  assert.deepEqual(
    updatesOf(elements).map(({ sessionUpdate, toolCallId, title, rawInput }) => [
      sessionUpdate,
      toolCallId,
      title,
      rawInput,
    ]),
    [
      ['tool_call', 't1', 'echo', { a: 1 }],
      ['tool_call', 't2', 'Ask', {}],
      ['tool_call_update', 't2', undefined, { q: 'x' }],
    ],
  );
});

const KINDS = {
  execute: ['Bash', 'bash'],
  read: ['Read', 'read'],
  edit: ['Write', 'Edit', 'Patch', 'write', 'edit', 'patch', 'ApplyPatch'],
  search: ['Grep', 'Glob', 'grep', 'glob'],
  fetch: ['WebFetch', 'webfetch', 'Fetch'],
  think: ['Agent', 'Task', 'TaskCreate', 'TaskUpdate', 'TaskGet', 'TaskList'],
  other: ['Skill', 'AskUserQuestion', 'mcp__fs__read', 'mcp__custom__x', 'BASH', ''],
};

test('adapter: the kind of a call follows from the name of its tool', async () => {
  for (const [kind, names] of Object.entries(KINDS)) {
    for (const name of names) {
      const [{ kind: told }] = updatesOf(await adapted([assistant([callBlock('t1', name)])]));
      assert.equal(told, kind, name);
    }
  }
});

const CLIENT = {
  __OAK_CLIENT_TOOL__: true,
  toolUseId: 't1',
  toolName: 'mcp__custom__pick_color',
  toolInput: { shade: 'dark' },
};

for (const [name, content] of Object.entries({
  'as a text': JSON.stringify(CLIENT),
  'in a block': textBlock(JSON.stringify(CLIENT)),
})) {
  test(`adapter: a client tool becomes a request of its own (${name})`, async () => {
    const [element, ...more] = await adapted([toolResult('t1', content, true)]);
    assert.deepEqual(more, []);
    assert.deepEqual(element, {
      jsonrpc: '2.0',
      id: 'conv:t1',
      method: 'client/pick_color',
      params: { shade: 'dark' },
      _meta: { sessionId: 'conv', toolCallId: 't1', assistantMessageId: 'turn_1' },
    });
  });
}

test('adapter: an input of a client tool that is no object is wrapped', async () => {
  for (const toolInput of ['red', [1], 7, null]) {
    const mark = JSON.stringify({ ...CLIENT, toolInput });
    const [{ params }] = await adapted([toolResult('t1', mark, true)]);
    assert.deepEqual(params, { value: toolInput });
  }
});

test('adapter: marks without a tool name take it from the call', async () => {
  const { toolName, ...mark } = CLIENT;
  assert.ok(toolName);
  const [, element] = await adapted([
    assistant([callBlock('t1', 'mcp__custom__pick_color')]),
    toolResult('t1', JSON.stringify(mark), true),
  ]);
  assert.equal(element.method, 'client/pick_color');
});

test('adapter: a result that only looks like a mark is a result', async () => {
  for (const text of [
    '{"__OAK_INTERRUPT__": false}',
    '{"__OAK_INTERRUPT__": true',
    '[1]',
    'true',
  ]) {
    const [update] = updatesOf(await adapted([toolResult('t1', text)]));
    assert.deepEqual([update.status, update.rawOutput], ['completed', text]);
  }
});

test('adapter: a failed call carries its words, a missing output is null', async () => {
  const blocks = [{ type: 'text', text: 'disk full' }];
  const [failed] = updatesOf(await adapted([toolResult('t1', blocks, true)]));
  assert.deepEqual([failed.status, failed.rawOutput], ['failed', blocks]);
  assert.deepEqual(failed.content, [
    { type: 'content', content: { type: 'text', text: 'disk full' } },
  ]);
  const [done] = updatesOf(await adapted([toolResult('t1', undefined)]));
  assert.deepEqual([done.status, done.rawOutput], ['completed', null]);
});

test('adapter: what a sub-agent does names the call that it works for', async () => {
  const elements = updatesOf(
    await adapted([
      callStarts(0, callBlock('top', 'Task', {})),
      // The same index in another answer.
      callStarts(0, callBlock('inner', 'Read', {}), 'top'),
      event(
        {
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'input_json_delta', partial_json: '{}' },
        },
        'top',
      ),
      event({ type: 'content_block_stop', index: 0 }, 'top'),
      toolResult('inner', 'text'),
      delta('words', 'top'),
    ]),
  );
  const parents = elements.map(({ toolCallId, _meta: meta }) => [
    toolCallId,
    meta?.parentToolCallId,
    meta?.oak?.parentToolCallId,
  ]);
  assert.deepEqual(parents, [
    ['top', undefined, undefined],
    ['inner', 'top', 'top'],
    ['inner', 'top', 'top'],
    ['inner', 'top', 'top'],
    ['inner', undefined, undefined],
    [undefined, undefined, undefined],
  ]);
});

test('adapter: other messages are ignored, and nothing makes it fail', async () => {
  const noise = [
    { type: 'system', subtype: 'compact_boundary' },
    { type: 'status' },
    { type: 'user', message: { role: 'user', content: 'said' } },
    { type: 'user' },
    { type: 'assistant' },
    { type: 'stream_event' },
    event({
      type: 'content_block_delta',
      index: 9,
      delta: { type: 'input_json_delta', partial_json: 'x' },
    }),
    null,
    undefined,
    'text',
  ];
  assert.deepEqual(await adapted(noise), []);
});

test('adapter: a result without counts tells idle alone', async () => {
  const updates = updatesOf(await adapted([result()]));
  assert.deepEqual(
    updates.map(({ sessionUpdate, phase }) => [sessionUpdate, phase]),
    [['agent_phase', 'idle']],
  );
});

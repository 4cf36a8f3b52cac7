import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { chunksOf, errorOf, phasesOf, textOf, thoughtOf } from './support/gateway-elements.js';
import { gatewayFor, tool } from './support/gateway.js';

const TURN = {
  rules: [
    { when: { hasToolResult: true }, reply: { thinking: 'So.', text: 'Both are done.' } },
    {
      reply: {
        thinking: 'Two things.',
        text: ['Let ', 'me.'],
        toolCalls: [
          { id: 'toolu_1', name: 'save', input: { a: 1 } },
          { id: 'toolu_2', name: 'send' },
        ],
      },
    },
  ],
  tools: [tool('save', () => ({ saved: 1 })), tool('send', () => 'sent')],
};

/** What the elements are; an input that grows counts once. */
function kinds(elements) {
  const names = elements.map(({ sessionUpdate, phase, status }) =>
    [sessionUpdate, phase ?? status].join(' ').trim(),
  );
  const grows = (name, at) => name.endsWith('update in_progress') && name === names[at - 1];
  return names.filter((name, at) => !grows(name, at));
}

/** What was told of a call after its announcement. */
function updatesOf(elements, id) {
  return elements.filter(
    ({ sessionUpdate, toolCallId }) => sessionUpdate === 'tool_call_update' && toolCallId === id,
  );
}

test('loop: the elements of a turn come in the order of the contract', async (t) => {
  const { send } = await gatewayFor(t, TURN);
  const elements = await send('go');
  assert.deepEqual(kinds(elements), [
    'agent_phase preparing',
    'agent_phase model_responding',
    'agent_thought_chunk',
    'agent_message_chunk',
    'agent_message_chunk',
    'tool_call in_progress',
    'tool_call_update in_progress',
    'tool_call in_progress',
    'usage_update',
    'agent_phase tool_executing',
    'tool_call_update completed',
    'agent_phase tool_executing',
    'tool_call_update completed',
    'agent_phase model_responding',
    'agent_thought_chunk',
    'agent_message_chunk',
    'agent_message_chunk',
    'usage_update',
    'agent_phase idle',
  ]);
  assert.deepEqual(phasesOf(elements), [
    'preparing',
    'model_responding',
    'tool_executing save',
    'tool_executing send',
    'model_responding',
    'idle',
  ]);
});

test('loop: tool elements carry both spellings, and the name of the tool', async (t) => {
  const { send } = await gatewayFor(t, TURN);
  const elements = await send('go');
  const [announced] = elements.filter(({ sessionUpdate }) => sessionUpdate === 'tool_call');
  const { _meta: meta, ...call } = announced;
  assert.deepEqual(call, {
    sessionUpdate: 'tool_call',
    toolCallId: 'toolu_1',
    title: 'save',
    kind: 'other',
    status: 'in_progress',
    input: {},
    rawInput: {},
  });
  assert.equal(meta.oak.toolName, 'save');
  assert.equal(typeof meta.oak.assistantMessageId, 'string');
  assert.deepEqual(updatesOf(elements, 'toolu_1').slice(-2), [
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'toolu_1',
      status: 'in_progress',
      input: { a: 1 },
      rawInput: { a: 1 },
    },
    {
      sessionUpdate: 'tool_call_update',
      toolCallId: 'toolu_1',
      status: 'completed',
      result: { saved: 1 },
      rawOutput: { saved: 1 },
    },
  ]);
});

test('loop: an input is shown as it grows, parsed, and whole before the tool runs', async (t) => {
  const input = { path: 'a/b.txt', lines: Array.from({ length: 40 }, (_, at) => `line ${at} 😀`) };
  const call = { id: 'toolu_1', name: 'save', input, fragments: 60 };
  const { send } = await gatewayFor(t, {
    ...TURN,
    rules: [TURN.rules[0], { reply: toolCalls([call]) }],
    knobs: { chunkDelayMs: 5 },
  });
  const elements = await send('go');
  const shown = updatesOf(elements, 'toolu_1').filter(({ status }) => status === 'in_progress');
  assert.ok(shown.length >= 1);
  for (const { input: part, rawInput } of shown) {
    assert.deepEqual(rawInput, part);
    assert.ok(typeof part === 'object' && !Array.isArray(part));
    assert.ok(JSON.stringify(part).isWellFormed());
    const lines = part.lines ?? [];
    lines.forEach((line, at) => assert.ok(input.lines[at].startsWith(line), line));
  }
  assert.deepEqual(shown.at(-1).input, input);
  const runs = elements.findIndex(({ phase }) => phase === 'tool_executing');
  assert.ok(elements.indexOf(shown.at(-1)) < runs);
});

test('loop: a failed call carries its words for display', async (t) => {
  const { send } = await gatewayFor(t, {
    ...TURN,
    tools: [tool('save', () => Promise.reject(new Error('disk full'))), TURN.tools[1]],
  });
  const elements = await send('go');
  const failed = elements.find(({ status }) => status === 'failed');
  assert.deepEqual(failed.error, { message: 'disk full' });
  assert.deepEqual(failed.content, [
    { type: 'content', content: { type: 'text', text: 'disk full' } },
  ]);
});

test('loop: all calls of an answer are announced before one runs', async (t) => {
  const { session } = await gatewayFor(t, TURN);
  const announced = [];
  for await (const { sessionUpdate, toolCallId, phase } of session.send('go')) {
    if (sessionUpdate === 'tool_call') announced.push(toolCallId);
    if (phase === 'tool_executing') assert.deepEqual(announced, ['toolu_1', 'toolu_2']);
  }
});

test('loop: the chunks of an answer share a message id, each answer has its own', async (t) => {
  const { send } = await gatewayFor(t, TURN);
  const chunks = chunksOf(await send('go'));
  const ids = chunks.map(({ messageId }) => messageId);
  assert.equal(ids[0], ids[1]);
  assert.equal(new Set(ids).size, 2);
  assert.deepEqual(chunks[0].content, { type: 'text', text: 'Let ' });
});

test('loop: text is told once, whatever comes between', async (t) => {
  const blocks = [
    { type: 'text', text: 'One. ' },
    { type: 'tool_use', name: 'send', input: {} },
    { type: 'text', text: 'Two. ' },
    { type: 'thinking', thinking: 'Hm.' },
    { type: 'text', text: 'Three.' },
  ];
  const { send } = await gatewayFor(t, {
    ...TURN,
    rules: [{ when: { hasToolResult: true }, reply: ' Four.' }, { reply: { blocks } }],
  });
  assert.equal(textOf(await send('go')), 'One. Two. Three. Four.');
});

test('loop: stream: false tells each block at once', async (t) => {
  const { send } = await gatewayFor(t, { ...TURN, stream: false, knobs: { textChunk: 2 } });
  const elements = await send('go');
  assert.deepEqual(
    chunksOf(elements).map(({ content }) => content.text),
    ['Let me.', 'Both are done.'],
  );
  assert.equal(thoughtOf(elements), 'Two things.So.');
});

test('loop: streamExtras: false leaves thinking and token counts out', async (t) => {
  const { send } = await gatewayFor(t, { ...TURN, streamExtras: false });
  const elements = await send('go');
  const names = new Set(elements.map(({ sessionUpdate }) => sessionUpdate));
  assert.deepEqual([...names].sort(), [
    'agent_message_chunk',
    'agent_phase',
    'tool_call',
    'tool_call_update',
  ]);
  assert.equal(textOf(elements), 'Let me.Both are done.');
});

test('loop: elements arrive while the answer is still being written', async (t) => {
  const { session, emulator } = await gatewayFor(t, {
    rules: [{ reply: text(['first', 'second']), knobs: { stallAfter: 3 } }],
  });
  for await (const element of session.send('hi')) {
    if (element.sessionUpdate !== 'agent_message_chunk') continue;
    assert.equal(element.content.text, 'first');
    assert.equal(emulator.openStreams(), 1);
    break;
  }
});

test('loop: five thousand chunks arrive in order', async (t) => {
  const { send } = await gatewayFor(t, { rules: { text: ['ab ', 'cd '], repeat: 2_500 } });
  const elements = await send('hi');
  assert.equal(chunksOf(elements).length, 5_000);
  assert.equal(textOf(elements), 'ab cd '.repeat(2_500));
});

test('loop: a consumer that stops reading does not lose what comes later', async (t) => {
  const { session } = await gatewayFor(t, { rules: { text: ['x'], repeat: 20_000 } });
  const stream = session.send('hi');
  let length = 0;
  for (let at = 0; ; at += 1) {
    const { value, done } = await stream.next();
    if (done) break;
    length += value.content?.text.length ?? 0;
    if (at % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(length, 20_000);
});

test('loop: throwOnError rejects after idle, with the error that was told', async (t) => {
  const { session } = await gatewayFor(t, { rules: { status: 403 } });
  const elements = [];
  const reading = (async () => {
    for await (const element of session.send('hi', { throwOnError: true })) elements.push(element);
  })();
  await assert.rejects(reading, (error) => {
    const told = errorOf(elements);
    assert.deepEqual(
      [error.code, error.name, error.status, error.requestId, error.message],
      [told.code, told.name, told.status, told.requestId, told.message],
    );
    return error.code === 'E_MODEL_AUTH';
  });
  assert.equal(elements.at(-1).phase, 'idle');
});

test('loop: a call in a text that is cut is announced and ended like any other', async (t) => {
  const { send } = await gatewayFor(t, {
    ...TURN,
    rules: [
      { times: 1, reply: toolCalls([{ name: 'send' }], { stopReason: 'max_tokens' }) },
      { reply: 'ok' },
    ],
  });
  // The rules of every stream are checked by `send`.
  assert.equal(textOf(await send('go')), 'ok');
});

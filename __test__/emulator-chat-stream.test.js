import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, thinking, toolCall, toolCalls } from '../emulator/index.js';
import { completion, deltasOf, send, stream, textOf } from '../emulator/fixtures/chat-client.js';
import { emulatorFor } from '../emulator/fixtures/client.js';

const replying = (t, reply, options) => emulatorFor(t, { rules: [{ reply }], ...options });
const callPieces = (chunks) => deltasOf(chunks).flatMap(({ tool_calls: pieces = [] }) => pieces);
const withUsage = {
  messages: [{ role: 'user', content: 'hi' }],
  stream_options: { include_usage: true },
};

test('a text answer has the shape of the chat completions API', async (t) => {
  const emulator = await replying(t, text(['Hel', 'lo']));
  const before = Math.floor(Date.now() / 1000);
  const response = await send(emulator, 'hi');
  assert.match(response.headers.get('content-type'), /^text\/event-stream/);
  assert.match(response.headers.get('request-id'), /^req_/);
  const frames = (await response.text()).split('\n\n');
  assert.equal(frames.pop(), '');
  assert.equal(frames.pop(), 'data: [DONE]');
  assert.ok(frames.every((frame) => frame.startsWith('data: {')));
  const chunks = frames.map((frame) => JSON.parse(frame.slice(6)));
  const { id, created } = chunks[0];
  assert.match(id, /^chatcmpl_/);
  assert.ok(created >= before && created <= Date.now() / 1000);
  const chunk = (delta, reason = null) => ({
    id,
    object: 'chat.completion.chunk',
    created,
    model: 'test-model',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  assert.deepEqual(chunks, [
    chunk({ role: 'assistant', content: '' }),
    chunk({ content: 'Hel' }),
    chunk({ content: 'lo' }),
    chunk({}, 'stop'),
  ]);
});

test('usage comes when it was asked for; the prompt includes the cache', async (t) => {
  const usage = {
    input_tokens: 17,
    cache_read_input_tokens: 10,
    cache_creation_input_tokens: 5,
    output_tokens: 47,
  };
  const emulator = await replying(t, text('x', { usage }));
  assert.ok((await stream(emulator, 'hi')).every((chunk) => !('usage' in chunk)));
  const last = (await stream(emulator, withUsage)).at(-1);
  assert.deepEqual(last.choices, []);
  const wanted = {
    prompt_tokens: 32,
    completion_tokens: 47,
    total_tokens: 79,
    prompt_tokens_details: { cached_tokens: 10 },
  };
  assert.deepEqual(last.usage, wanted);
  assert.deepEqual((await completion(emulator, 'hi')).usage, wanted);
});

test('null leaves a count of the usage out', async (t) => {
  const usage = { input_tokens: null, cache_read_input_tokens: null, output_tokens: 3 };
  const emulator = await replying(t, text('x', { usage }));
  assert.deepEqual((await stream(emulator, withUsage)).at(-1).usage, { completion_tokens: 3 });
});

test('thinking streams as reasoning, without a signature', async (t) => {
  const emulator = await replying(t, thinking('Let me think.', ['Done.']));
  const deltas = deltasOf(await stream(emulator, 'hi'));
  assert.deepEqual(deltas.slice(1, -1), [
    { reasoning_content: 'Let me think' },
    { reasoning_content: '.' },
    { content: 'Done.' },
  ]);
  const { message } = (await completion(emulator, 'hi')).choices[0];
  assert.deepEqual(message, {
    role: 'assistant',
    content: 'Done.',
    reasoning_content: 'Let me think.',
  });
});

test('the first fragment of a call comes with its id and name', async (t) => {
  const emulator = await replying(t, toolCall('echo', { a: 1 }, { text: 'Calling.' }));
  const chunks = await stream(emulator, 'hi');
  const [first, second] = callPieces(chunks);
  assert.match(first.id, /^call_/);
  assert.deepEqual(first, {
    index: 0,
    id: first.id,
    type: 'function',
    function: { name: 'echo', arguments: '' },
  });
  assert.deepEqual(second, { index: 0, function: { arguments: '{"a":1}' } });
  assert.equal(textOf(chunks), 'Calling.');
  assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
});

const FRAGMENTS = [
  ['no input', { name: 'now' }, ['', '{}']],
  ['empty input', { name: 'now', input: {} }, ['', '{}']],
  ['raw empty text', { name: 'now', raw: '' }, ['']],
  ['fragments 0: no arguments at all', { name: 'now', fragments: 0 }, [undefined]],
  ['fragments 1: everything at once', { name: 'f', input: { a: 1 }, fragments: 1 }, ['{"a":1}']],
  ['fragments 3', { name: 'f', input: { a: 1 }, fragments: 3 }, ['', '{"a"', ':1}']],
  ['exact fragments', { name: 'f', raw: '{"a":1}', fragments: ['{"', 'a":1}'] }, ['{"', 'a":1}']],
  ['raw text that is no JSON', { name: 'f', raw: '{"a":' }, ['', '{"a":']],
];
for (const [title, call, wanted] of FRAGMENTS) {
  test(`arguments: ${title}`, async (t) => {
    const emulator = await replying(t, toolCalls([call]));
    const pieces = callPieces(await stream(emulator, 'hi'));
    assert.equal(pieces[0].function.name, call.name);
    assert.deepEqual(
      pieces.map((piece) => piece.function.arguments),
      wanted,
    );
  });
}

test('calls are numbered; interleaved ones mix their fragments', async (t) => {
  const calls = [
    { id: 'c0', name: 'a', input: { x: 1 }, fragments: 3 },
    { id: 'c1', name: 'b', input: { y: 2 }, fragments: 3 },
  ];
  for (const [interleave, order] of [
    [false, [0, 0, 0, 1, 1, 1]],
    [true, [0, 1, 0, 1, 0, 1]],
  ]) {
    const emulator = await replying(t, { text: 'x', toolCalls: calls, interleave });
    const pieces = callPieces(await stream(emulator, 'hi'));
    assert.deepEqual(
      pieces.map(({ index }) => index),
      order,
    );
    const named = pieces.filter(({ id }) => id !== undefined);
    assert.deepEqual(
      named.map(({ index, id, function: { name } }) => [index, id, name]),
      [
        [0, 'c0', 'a'],
        [1, 'c1', 'b'],
      ],
    );
  }
});

const REASONS = [
  ['end_turn', 'stop'],
  ['max_tokens', 'length'],
  ['tool_use', 'tool_calls'],
  ['refusal', 'content_filter'],
  ['model_overheated', 'model_overheated'],
  [null, null],
];
for (const [stopReason, wanted] of REASONS) {
  test(`stop reason ${stopReason} becomes ${wanted}`, async (t) => {
    const emulator = await replying(t, text('x', { stopReason }));
    const last = (await stream(emulator, 'hi')).at(-1);
    assert.equal(last.choices[0].finish_reason, wanted);
    assert.equal((await completion(emulator, 'hi')).choices[0].finish_reason, wanted);
  });
}

test('id and model can be given; blocks without a counterpart are left out', async (t) => {
  const blocks = [
    { type: 'redacted_thinking', data: 'abc' },
    { type: 'text', text: 'ok' },
    { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } },
  ];
  const emulator = await replying(t, { id: 'chat-1', model: 'other', blocks });
  const chunks = await stream(emulator, 'hi');
  assert.ok(chunks.every(({ id, model }) => id === 'chat-1' && model === 'other'));
  assert.equal(textOf(chunks), 'ok');
  assert.equal(callPieces(chunks)[0].index, 0);
});

test('an answer may be empty', async (t) => {
  const emulator = await replying(t, { blocks: [] });
  assert.deepEqual(deltasOf(await stream(emulator, 'hi')), [
    { role: 'assistant', content: '' },
    {},
  ]);
});

test('without stream the whole answer comes as JSON', async (t) => {
  const calls = [
    { id: 'c0', name: 'f', input: { a: 1 } },
    { id: 'c1', name: 'g', raw: '{"broken' },
    { id: 'c2', name: 'h' },
  ];
  const emulator = await replying(t, toolCalls(calls));
  const { id, object, model, choices } = await completion(emulator, 'hi');
  assert.match(id, /^chatcmpl_/);
  assert.equal(object, 'chat.completion');
  assert.equal(model, 'test-model');
  const call = (callId, name, text) => ({
    id: callId,
    type: 'function',
    function: { name, arguments: text },
  });
  assert.deepEqual(choices, [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [
          call('c0', 'f', '{"a":1}'),
          call('c1', 'g', '{"broken'),
          call('c2', 'h', '{}'),
        ],
      },
      finish_reason: 'tool_calls',
    },
  ]);
});

test('long streams repeat their text', async (t) => {
  const emulator = await replying(t, { text: 'hello ', repeat: 5000 });
  assert.equal(textOf(await stream(emulator, 'hi')), 'hello '.repeat(5000));
  const { message } = (await completion(emulator, 'hi')).choices[0];
  assert.equal(message.content, 'hello '.repeat(5000));
});

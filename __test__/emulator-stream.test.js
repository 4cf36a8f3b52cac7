import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall, toolCalls } from '../emulator/index.js';
import { emulatorFor, message, stream, textOf } from '../emulator/fixtures/client.js';

const types = (events) => events.map(({ type }) => type);
const deltas = (events, index) =>
  events.filter((event) => event.delta && event.index === index).map(({ delta }) => delta);

test('a text answer has the shape of the Messages API', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: text(['Hel', 'lo']) }] });
  const events = await stream(emulator, 'hi');
  assert.deepEqual(types(events), [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
  const { message: start } = events[0];
  assert.match(start.id, /^msg_/);
  assert.deepEqual(start.content, []);
  assert.equal(start.model, 'test-model');
  assert.equal(start.stop_reason, null);
  assert.deepEqual(deltas(events, 0), [
    { type: 'text_delta', text: 'Hel' },
    { type: 'text_delta', text: 'lo' },
  ]);
  assert.deepEqual(events[5].delta, { stop_reason: 'end_turn', stop_sequence: null });
  assert.equal(events[5].usage.output_tokens, 2);
});

test('text is cut into chunks without splitting a code point', async (t) => {
  const answer = '北京😀😀天气';
  const emulator = await emulatorFor(t, { rules: [{ reply: answer }], knobs: { textChunk: 3 } });
  const events = await stream(emulator, 'hi');
  const pieces = deltas(events, 0).map((delta) => delta.text);
  assert.ok(pieces.length > 2);
  assert.ok(pieces.every((piece) => piece.isWellFormed() && piece.length <= 3));
  assert.equal(pieces.join(''), answer);
});

test('thinking streams its text, then its signature', async (t) => {
  const reply = { thinking: 'Let me think.', text: 'Done.' };
  const emulator = await emulatorFor(t, { rules: [{ reply }] });
  const events = await stream(emulator, 'hi');
  assert.deepEqual(events[1].content_block, { type: 'thinking', thinking: '', signature: '' });
  const last = deltas(events, 0).at(-1);
  assert.equal(last.type, 'signature_delta');
  const { content } = await message(emulator, 'hi');
  assert.deepEqual(content[0], {
    type: 'thinking',
    thinking: 'Let me think.',
    signature: last.signature,
  });
});

test('signature null sends no signature', async (t) => {
  const reply = { thinking: 'x', signature: null, text: 'y' };
  const emulator = await emulatorFor(t, { rules: [{ reply }] });
  const events = await stream(emulator, 'hi');
  assert.deepEqual(deltas(events, 0), [{ type: 'thinking_delta', thinking: 'x' }]);
});

test('a tool call streams an empty fragment first', async (t) => {
  const reply = toolCall('echo', { text: 'one' }, { text: 'Calling.' });
  const emulator = await emulatorFor(t, { rules: [{ reply }] });
  const events = await stream(emulator, 'hi');
  const start = events.find(({ index }) => index === 1).content_block;
  assert.match(start.id, /^toolu_/);
  assert.deepEqual({ ...start, id: '' }, { type: 'tool_use', id: '', name: 'echo', input: {} });
  assert.deepEqual(
    deltas(events, 1).map((delta) => delta.partial_json),
    ['', '{"text":"one"}'],
  );
  assert.equal(events.at(-2).delta.stop_reason, 'tool_use');
});

const FRAGMENTS = [
  ['no input: one empty fragment', { name: 'now' }, ['']],
  ['empty input: one empty fragment', { name: 'now', input: {} }, ['']],
  ['fragments 0: no delta at all', { name: 'now', fragments: 0 }, []],
  ['fragments 1: no empty one', { name: 'f', input: { a: 1 }, fragments: 1 }, ['{"a":1}']],
  ['fragments 3', { name: 'f', input: { a: 1 }, fragments: 3 }, ['', '{"a"', ':1}']],
  ['exact fragments', { name: 'f', raw: '{"a":1}', fragments: ['{"', 'a":1}'] }, ['{"', 'a":1}']],
  ['raw text that is no JSON', { name: 'f', raw: '{"a":' }, ['', '{"a":']],
];
for (const [title, call, wanted] of FRAGMENTS) {
  test(`tool input: ${title}`, async (t) => {
    const emulator = await emulatorFor(t, { rules: [{ reply: toolCalls([call]) }] });
    const events = await stream(emulator, 'hi');
    assert.deepEqual(
      deltas(events, 0).map((delta) => delta.partial_json),
      wanted,
    );
  });
}

test('interleaved calls mix their fragments', async (t) => {
  const calls = [
    { name: 'a', input: { x: 1 }, fragments: 3 },
    { name: 'b', input: { y: 2 }, fragments: 3 },
  ];
  const emulator = await emulatorFor(t, {
    rules: [{ reply: toolCalls(calls, { interleave: true }) }],
  });
  const events = await stream(emulator, 'hi');
  const order = events.filter(({ delta, index }) => delta && index >= 0).map(({ index }) => index);
  assert.deepEqual(order, [0, 1, 0, 1, 0, 1]);
});

test('raw blocks, stop reason, ids and usage can be given', async (t) => {
  const reply = {
    id: 'msg_fixed',
    blocks: [
      { type: 'redacted_thinking', data: 'abc' },
      { type: 'text', text: 'ok' },
    ],
    stopReason: 'stop_sequence',
    stopSequence: 'END',
    startUsage: { input_tokens: null, output_tokens: 1 },
    usage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 47 },
  };
  const emulator = await emulatorFor(t, { rules: [{ reply }] });
  const events = await stream(emulator, 'hi');
  assert.equal(events[0].message.id, 'msg_fixed');
  assert.equal('input_tokens' in events[0].message.usage, false);
  assert.deepEqual(events[1].content_block, { type: 'redacted_thinking', data: 'abc' });
  assert.deepEqual(events.at(-2).delta, { stop_reason: 'stop_sequence', stop_sequence: 'END' });
  assert.equal(events.at(-2).usage.input_tokens, 27);
  assert.equal(events.at(-2).usage.output_tokens, 47);
});

test('an answer may be empty', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: { blocks: [] } }] });
  const events = await stream(emulator, 'hi');
  assert.deepEqual(types(events), ['message_start', 'message_delta', 'message_stop']);
});

test('without stream the whole message comes as JSON', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [{ reply: toolCall('f', { a: 1 }, { text: 'x' }) }],
  });
  const { content, stop_reason: stopReason, type } = await message(emulator, 'hi');
  assert.equal(type, 'message');
  assert.equal(stopReason, 'tool_use');
  assert.deepEqual(content[0], { type: 'text', text: 'x' });
  assert.deepEqual(content[1].input, { a: 1 });
});

test('long streams repeat their text', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: { text: 'hello ', repeat: 5000 } }] });
  const all = await Promise.all([1, 2, 3].map(() => stream(emulator, 'hi')));
  for (const events of all) {
    assert.equal(deltas(events, 0).length, 5000);
    assert.equal(textOf(events), 'hello '.repeat(5000));
  }
});

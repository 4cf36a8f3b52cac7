import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall, toolCalls } from '../emulator/index.js';
import { endsOf, idleOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn, tool } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };

/** A tool that notes its inputs. */
function noting(name, more) {
  const inputs = [];
  return [inputs, tool(name, (input) => (inputs.push(input), 'noted'), more)];
}

const EMPTY_INPUTS = {
  'an empty fragment': { fragments: [''] },
  'no fragment at all': { fragments: 0 },
  'white space only': { fragments: ['', ' \n\t'] },
  'an empty object': { fragments: ['{', '}'] },
};

for (const [name, more] of Object.entries(EMPTY_INPUTS)) {
  test(`FC-A4 a call with ${name} runs once with an empty input`, async (t) => {
    const [inputs, now] = noting('now');
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, { reply: toolCall('now', {}, { id: 'toolu_1', ...more }) }],
      tools: [now],
    });
    const elements = await send('what time is it?');
    assert.deepEqual(inputs, [{}]);
    assert.deepEqual(endsOf(elements), [['toolu_1', 'completed', 'noted']]);
    const [, answer, results] = messages(-1);
    assert.deepEqual(answer.content[0].input, {});
    assert.deepEqual(resultsIn(results), [['toolu_1', 'noted', false]]);
  });
}

/** About 3 KB of JSON with everything that must not be cut. */
function largeInput(mark) {
  return {
    mark,
    escapes: 'tab\t quote" back\\slash nul\u0000 line\nend',
    numbers: [1234567890.125, -1e-7, 0],
    cities: Array.from({ length: 60 }, (_, at) => `北京😀${at}`),
    nested: { deep: { list: [true, false, null, '\u{1F600}'] } },
    filler: 'x'.repeat(1_500),
  };
}

for (const fragments of [2, 7, 100, 2_000]) {
  test(`FC-A5 two inputs in ${fragments} mixed fragments arrive whole`, async (t) => {
    const [inputs, save] = noting('save', { readOnly: false });
    const calls = ['first', 'second'].map((mark) => ({
      name: 'save',
      input: largeInput(mark),
      fragments,
    }));
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, { reply: toolCalls(calls, { interleave: true }) }],
      tools: [save],
    });
    await send('save it');
    assert.deepEqual(inputs, [largeInput('first'), largeInput('second')]);
    const sent = messages(-1)[1].content.map(({ input }) => input);
    assert.deepEqual(sent, inputs);
  });
}

const ESCAPED = String.raw`{"text":"line\nend \ud83d\ude00 \"q\"","n":12345}`;

test('FC-A5 an input cut inside an escape and inside a number arrives whole', async (t) => {
  const [inputs, save] = noting('save');
  const { send } = await gatewayFor(t, {
    rules: [
      THEN_DONE,
      { reply: toolCall('save', undefined, { raw: ESCAPED, fragments: [...ESCAPED] }) },
    ],
    tools: [save],
  });
  await send('save it');
  assert.deepEqual(inputs, [{ text: 'line\nend 😀 "q"', n: 12345 }]);
});

const BROKEN = ['{"text": "unterm', '[1, 2]', '"text"', '42', 'null', '{} trailing', '{"a":1,}'];

for (const raw of BROKEN) {
  test(`FC-A5 the input ${raw} does not run the tool, and the model is told`, async (t) => {
    const [inputs, save] = noting('save');
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, { reply: toolCall('save', undefined, { id: 'toolu_1', raw }) }],
      tools: [save],
    });
    const elements = await send('save it');
    assert.deepEqual(inputs, []);
    assert.equal(endsOf(elements)[0][1], 'failed');
    const [[, told, isError]] = resultsIn(messages(-1)[2]);
    assert.equal(isError, true);
    assert.match(told, /save.*could not be parsed/s);
    assert.equal(textOf(elements), 'Done.');
  });
}

const CUT = 'max_tokens';
const REQUIRES_PATH = {
  parameters: {
    type: 'object',
    properties: { path: { type: 'string' }, text: { type: 'string' } },
    required: ['path', 'text'],
  },
};
const CUT_ANSWERS = {
  'whole but lacks a field': toolCalls([{ name: 'save', input: { path: 'a' } }]),
  'cut in its JSON': toolCalls([{ name: 'save', raw: '{"path": "a", "te' }]),
  'whole, before a cut one': toolCalls([
    { name: 'save', input: { path: 'a', text: 'b' } },
    { name: 'save', raw: '{"path": "b' },
  ]),
  'whole and valid': toolCalls([{ name: 'save', input: { path: 'a', text: 'b' } }]),
};

for (const [name, reply] of Object.entries(CUT_ANSWERS)) {
  test(`FC-A6 a call that is ${name} does not run when the output limit cut the answer`, async (t) => {
    const [inputs, save] = noting('save', REQUIRES_PATH);
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, { reply: { ...reply, stopReason: CUT } }],
      tools: [save],
    });
    const elements = await send('save it');
    assert.deepEqual(inputs, []);
    const results = resultsIn(messages(-1)[2]);
    assert.equal(results.length, reply.toolCalls.length);
    for (const [, told, isError] of results) {
      assert.equal(isError, true);
      assert.match(told, /output limit|max_tokens|truncat/);
      assert.doesNotMatch(told, /required|schema|parsed/);
    }
    assert.ok(endsOf(elements).every(([, status]) => status === 'failed'));
    // The caller sees why.
    const logs = elements.filter(({ sessionUpdate }) => sessionUpdate === 'log');
    assert.ok(logs.some(({ message }) => /output limit/.test(message)));
    assert.equal(textOf(elements), 'Done.');
    assert.equal(idleOf(elements).stopReason, 'end_turn');
  });
}

test('FC-A6 a model that is always cut in its calls does not go on for ever', async (t) => {
  const [inputs, save] = noting('save', REQUIRES_PATH);
  const { emulator, send } = await gatewayFor(t, {
    rules: () => toolCalls([{ name: 'save', raw: '{"path": "a' }], { stopReason: CUT }),
    tools: [save],
  });
  const elements = await send('save it');
  assert.deepEqual(inputs, []);
  assert.ok(emulator.requests.length <= 5, `${emulator.requests.length} requests`);
  assert.equal(idleOf(elements).stopReason, 'max_tokens');
  assert.equal(endsOf(elements).length, emulator.requests.length);
  // The session is usable: the last calls have their results too.
  emulator.setRules([{ reply: 'fine' }]);
  assert.equal(textOf(await send('and now?')), 'fine');
});

test('FC-A6 a text that is cut is continued, within bounds', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: text('One half, ', { stopReason: CUT }) }, { reply: 'the other.' }],
  });
  const elements = await send('tell me');
  assert.equal(textOf(elements), 'One half, the other.');
  assert.equal(idleOf(elements).stopReason, 'end_turn');

  emulator.setRules([{ reply: text('more ', { stopReason: CUT }) }]);
  const before = emulator.requests.length;
  const endless = await send('tell me more');
  assert.equal(idleOf(endless).stopReason, 'max_tokens');
  assert.ok(emulator.requests.length - before <= 5);
});

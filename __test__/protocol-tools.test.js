import assert from 'node:assert/strict';

import { text, toolCall, toolCalls } from '../emulator/index.js';
import { both } from './support/format-protocols.js';
import { endsOf, idleOf, restartsOf, textOf } from './support/gateway-elements.js';
import { resultsIn, tool } from './support/gateway.js';

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
  both(`FC-A4 a call with ${name} runs once with an empty input`, async (t, protocol, agentFor) => {
    const [inputs, now] = noting('now');
    const { send, messages } = await agentFor({
      rules: [THEN_DONE, { reply: toolCall('now', {}, { id: 'call_1', ...more }) }],
      tools: [now],
    });
    const elements = await send('time?');
    assert.deepEqual(inputs, [{}]);
    assert.deepEqual(endsOf(elements), [['call_1', 'completed', 'noted']]);
    assert.deepEqual(messages(-1)[1].content[0].input, {});
    assert.equal(textOf(elements), 'Done.');
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

for (const interleave of [false, true]) {
  for (const fragments of [1, 7, 500]) {
    const how = `${fragments} ${interleave ? 'interleaved' : 'consecutive'} fragments`;
    both(`FC-A5 three inputs in ${how} arrive whole`, async (t, protocol, agentFor) => {
      const [inputs, save] = noting('save');
      const calls = ['first', 'second', 'third'].map((mark) => ({
        id: `call_${mark}`,
        name: 'save',
        input: largeInput(mark),
        fragments,
      }));
      const { send, messages } = await agentFor({
        rules: [THEN_DONE, { reply: toolCalls(calls, { text: 'Three.', interleave }) }],
        tools: [save],
      });
      const elements = await send('save it');
      assert.deepEqual(inputs, ['first', 'second', 'third'].map(largeInput));
      const [, answer, results] = messages(-1);
      assert.deepEqual(
        answer.content.slice(1).map(({ id, input }) => [id, input]),
        calls.map(({ id, input }) => [id, input]),
      );
      assert.deepEqual(
        resultsIn(results).map(([id]) => id),
        calls.map(({ id }) => id),
      );
      assert.equal(endsOf(elements).length, 3);
    });
  }
}

const ESCAPED = String.raw`{"text":"line\nend \ud83d\ude00 \"q\"","n":12345}`;

both(
  'FC-A5 an input cut inside an escape and inside a number arrives whole',
  async (t, protocol, agentFor) => {
    const [inputs, save] = noting('save');
    const { send } = await agentFor({
      rules: [
        THEN_DONE,
        { reply: toolCall('save', undefined, { raw: ESCAPED, fragments: [...ESCAPED] }) },
      ],
      tools: [save],
    });
    await send('save it');
    assert.deepEqual(inputs, [{ text: 'line\nend 😀 "q"', n: 12345 }]);
  },
);

for (const raw of ['{"text": "unterm', '[1, 2]', '"text"', '42', 'null', '{} more', '{"a":1,}']) {
  both(
    `FC-A5 the input ${raw} does not run the tool, and the model is told`,
    async (t, protocol, agentFor) => {
      const [inputs, save] = noting('save');
      const { send, messages } = await agentFor({
        rules: [THEN_DONE, { reply: toolCall('save', undefined, { id: 'call_1', raw }) }],
        tools: [save],
      });
      const elements = await send('save it');
      assert.deepEqual(inputs, []);
      assert.equal(endsOf(elements)[0][1], 'failed');
      assert.match(resultsIn(messages(-1)[2])[0][1], /save.*could not be parsed/s);
      assert.equal(textOf(elements), 'Done.');
    },
  );
}

const PATH = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
const CUT_ANSWERS = {
  'whole but lacks a field': [{ name: 'save', input: { text: 'a' } }],
  'cut in its JSON': [{ name: 'save', raw: '{"path": "a", "te' }],
  'whole, before a cut one': [
    { name: 'save', input: { path: 'a' } },
    { name: 'save', raw: '{"path": "b' },
  ],
};

for (const [name, calls] of Object.entries(CUT_ANSWERS)) {
  both(
    `FC-A6 a call that is ${name} does not run when the limit cut the answer`,
    async (t, protocol, agentFor) => {
      const [inputs, save] = noting('save', { parameters: PATH });
      const { send, messages } = await agentFor({
        rules: [THEN_DONE, { reply: toolCalls(calls, { stopReason: 'max_tokens' }) }],
        tools: [save],
      });
      const elements = await send('save it');
      assert.deepEqual(inputs, []);
      const results = resultsIn(messages(-1)[2]);
      assert.equal(results.length, calls.length);
      for (const [, told] of results) assert.match(told, /output limit|max_tokens/);
      assert.ok(endsOf(elements).every(([, status]) => status === 'failed'));
      assert.ok(elements.some(({ message }) => /output limit/.test(message ?? '')));
      assert.equal(idleOf(elements).stopReason, 'end_turn');
    },
  );
}

both('FC-A6 a model that is always cut does not go on for ever', async (t, protocol, agentFor) => {
  const [inputs, save] = noting('save', { parameters: PATH });
  const { send, emulator } = await agentFor({
    rules: () => toolCalls([{ name: 'save', raw: '{"path": "a' }], { stopReason: 'max_tokens' }),
    tools: [save],
  });
  const elements = await send('save it');
  assert.deepEqual(inputs, []);
  assert.equal(idleOf(elements).stopReason, 'max_tokens');
  assert.ok(emulator.requests.length < 12, `${emulator.requests.length} requests`);
});

both('FC-A6 a text that the limit cut is continued', async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: [
      { times: 1, reply: text('First half,', { stopReason: 'max_tokens' }) },
      { reply: ' second half.' },
    ],
  });
  const elements = await send('tell me');
  assert.equal(textOf(elements), 'First half, second half.');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(emulator.requests.length, 2);
});

for (const [name, id] of Object.entries({ 'its own id': 'call_2', 'the same id': 'call_1' })) {
  both(
    `a call of a broken answer never runs, the next one has ${name}`,
    async (t, protocol, agentFor) => {
      const [inputs, save] = noting('save');
      const call = (mark, as) => toolCall('save', { mark }, { id: as, text: 'Let me.' });
      const { send, messages } = await agentFor({
        rules: [
          // Behind the text and the head of the call.
          { times: 1, reply: call('lost', 'call_1'), knobs: { resetAfter: protocol.after(1) + 2 } },
          THEN_DONE,
          { reply: call('kept', id) },
        ],
        tools: [save],
      });
      const elements = await send('go');
      assert.deepEqual(inputs, [{ mark: 'kept' }]);
      assert.equal(restartsOf(elements).length, 1);
      assert.equal(resultsIn(messages(-1)[2]).length, 1);
      assert.equal(textOf(elements), 'Let me.Done.');
    },
  );
}

both('calls run whatever the reason says', async (t, protocol, agentFor) => {
  for (const stopReason of ['end_turn', 'stop_sequence', 'something_new']) {
    const [inputs, now] = noting('now');
    const { send } = await agentFor({
      rules: [THEN_DONE, { reply: toolCall('now', {}, { stopReason }) }],
      tools: [now],
    });
    assert.equal(idleOf(await send('time?')).stopReason, 'end_turn');
    assert.equal(inputs.length, 1, stopReason);
  }
});

both(
  'a refusal with a call ends the run, and the call does not run',
  async (t, protocol, agentFor) => {
    const [inputs, now] = noting('now');
    const { send } = await agentFor({
      rules: [
        { times: 1, reply: toolCall('now', {}, { stopReason: 'refusal' }) },
        { reply: 'fine' },
      ],
      tools: [now],
    });
    const elements = await send('time?');
    assert.deepEqual(inputs, []);
    assert.equal(idleOf(elements).stopReason, 'refusal');
    assert.equal(textOf(await send('and now?')), 'fine');
  },
);

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { endsOf, idleOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn, textIn, tool } from './support/gateway.js';

const HIGH = '\ud83d';
const LOW = '\ude00';
const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };
const calling = (name, input) => ({ reply: toolCalls([{ id: 'toolu_1', name, input }]) });

const HALVES = {
  'a high half at the end': [`end ${HIGH}`, 'end \ufffd'],
  'a low half at the start': [`${LOW} start`, '\ufffd start'],
  'halves in the wrong order': [`${LOW}${HIGH}`, '\ufffd\ufffd'],
  'a whole emoji beside a half': [`😀${HIGH}`, '😀\ufffd'],
};

for (const [name, [given, wanted]] of Object.entries(HALVES)) {
  test(`FC-B7 ${name} in a prompt`, async (t) => {
    const { session, send, messages } = await gatewayFor(t, { rules: 'ok' });
    await send(given);
    assert.equal(textIn(messages(-1)[0]), wanted);
    await send({ type: 'message', content: given });
    assert.equal(textIn(messages(-1)[2]), wanted);
    await session.prompt(given);
    assert.equal(textIn(messages(-1)[4]), wanted);
  });

  test(`FC-B7 ${name} in what a tool gives`, async (t) => {
    const outputs = [given, { [given]: [given] }, new Error(given)];
    const { send, messages, emulator } = await gatewayFor(t, {
      rules: [THEN_DONE, calling('echo', {})],
      tools: [
        tool('echo', () => {
          const output = outputs.shift();
          if (output instanceof Error) throw output;
          return output;
        }),
      ],
    });
    const told = [];
    for (const prompt of ['text', 'object', 'error']) {
      const elements = await send(prompt);
      assert.ok(elements.every((element) => JSON.stringify(element).isWellFormed()));
      told.push(resultsIn(messages(-1).at(-1))[0][1]);
    }
    assert.deepEqual(told, [wanted, JSON.stringify({ [wanted]: [wanted] }), wanted]);
    assert.equal(emulator.requests.length, 6);
  });
}

test('FC-B7 halves in the configuration do not break the request', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: 'ok',
    systemPrompt: `be ${HIGH}`,
    tools: [tool('now', () => 'noon', { description: `${LOW} clock` })],
  });
  await send('hi');
  const { system, tools } = emulator.requests[0].body;
  assert.deepEqual([system[0].text, tools[0].description], ['be \ufffd', '\ufffd clock']);
});

test('FC-B7 a half pair that the model escapes in its input stays valid', async (t) => {
  const raw = String.raw`{"text":"\ud83d"}`;
  const { send } = await gatewayFor(t, {
    rules: [THEN_DONE, { reply: toolCalls([{ name: 'echo', raw }]) }],
    tools: [tool('echo', ({ text: given }) => given ?? 'nothing')],
  });
  const elements = await send('go');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(textOf(await send('more')), 'Done.');
});

const FIVE_MB = 5_000_000;
const LARGE = {
  'a text': ['a', `first ${'x'.repeat(FIVE_MB)} last`, 'first x', 'x last'],
  'a text of emoji': ['b', `😀${'😀'.repeat(FIVE_MB / 4)}`, '😀😀', '😀😀'],
  'an object': ['c', { head: 'x'.repeat(FIVE_MB), tail: 1 }, '{"head":"x', 'x","tail":1}'],
  'a list of many': ['d', Array.from({ length: 500_000 }, (_, at) => at), '[0,1,2', '499999]'],
};

for (const [name, [, output, head, tail]] of Object.entries(LARGE)) {
  test(`FC-B8 ${name} of some MB reaches the model cut, with both ends`, async (t) => {
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, calling('dump', {})],
      tools: [tool('dump', () => output)],
    });
    const elements = await send('go');
    const [[, told, isError]] = resultsIn(messages(-1)[2]);
    const original = typeof output === 'string' ? output : JSON.stringify(output);
    const size = [...original].length;
    assert.equal(isError, false);
    assert.ok([...told].length <= 100_200, `${[...told].length} characters`);
    assert.ok([...told].length >= 90_000);
    assert.ok(told.startsWith(head) && told.endsWith(tail));
    assert.match(told, new RegExp(`of ${size} characters`));
    assert.ok(!told.includes('\ufffd') && told.isWellFormed());
    // The stream is bounded as well.
    assert.ok(JSON.stringify(elements).length < 500_000);
    assert.equal(textOf(await send('more')), 'Done.');
  });
}

test('FC-B8 a thrown error of some MB is cut as well', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('dump', {})],
    tools: [
      tool('dump', () => {
        throw new Error('x'.repeat(FIVE_MB));
      }),
    ],
  });
  const elements = await send('go');
  const [[, told, isError]] = resultsIn(messages(-1)[2]);
  assert.equal(isError, true);
  assert.ok(told.length <= 100_200);
  assert.ok(JSON.stringify(elements).length < 500_000);
});

test('FC-B8 an output just within the limit is not touched', async (t) => {
  const output = '😀'.repeat(100_000);
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('dump', {})],
    tools: [tool('dump', () => output)],
  });
  const elements = await send('go');
  assert.equal(resultsIn(messages(-1)[2])[0][1], output);
  assert.equal(endsOf(elements)[0][2], output);
});

test('FC-B8 a prompt of 5 MB is sent whole', async (t) => {
  const prompt = `${'北京😀'.repeat(400_000)}!`;
  const { send, messages } = await gatewayFor(t, { rules: 'ok' });
  assert.equal(textOf(await send(prompt)), 'ok');
  assert.equal(textIn(messages(-1)[0]), prompt);
});

test('FC-B10 a value that looks like image blocks stays text', async (t) => {
  const image = {
    type: 'image',
    source: { type: 'base64', media_type: 'image/png', data: 'AAAA' },
  };
  const output = Array.from({ length: 110 }, () => image);
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('shots', {})],
    tools: [tool('shots', () => output)],
  });
  const elements = await send('go');
  assert.equal(resultsIn(messages(-1)[2])[0][1], JSON.stringify(output));
  assert.deepEqual(endsOf(elements)[0][2], output);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chunksOf, idleOf, readStream, textOf } from './support/gateway-elements.js';
import { gatewayFor, textIn } from './support/gateway.js';

const CITY = '北京😀';
const ANSWER = ['Hello ', CITY, ' bye'];
const WHOLE = ANSWER.join('');

/** An answer that has the same bytes every time. */
const REPLY = {
  id: 'msg_fixed',
  model: 'glm',
  text: ANSWER,
  usage: { input_tokens: 5, output_tokens: 5 },
};
/** Answers a prompt with a body that is cut at an offset. */
const cutAt = (offset) => ({
  when: { user: new RegExp(`^cut ${offset}$`) },
  reply: { ...REPLY, knobs: { splitAt: [offset], splitDelayMs: 1 } },
});

/** Where the event that holds the characters begins and ends in the body. */
async function eventRange(emulator) {
  const response = await fetch(`${emulator.gatewayUrl}/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.apiKey}` },
    body: JSON.stringify({
      model: 'glm',
      max_tokens: 9,
      stream: true,
      messages: [{ role: 'user', content: 'measure' }],
    }),
  });
  const body = Buffer.from(await response.arrayBuffer());
  const middle = body.indexOf(CITY);
  const start = body.lastIndexOf('\n\n', middle) + 2;
  return { start, end: body.indexOf('\n\n', middle) + 2 };
}

/** Talks twice: the second request shows what was kept of the first answer. */
async function talk(agent, emulator, prompt) {
  const session = await agent.startSession({ userId: 'ann' });
  const first = await readStream(session.send(prompt));
  await readStream(session.send(`after ${prompt}`));
  const { body } = emulator.requests.find(
    ({ body: sent }) => sent.messages.length === 3 && textIn(sent.messages[0]) === prompt,
  );
  return { first, kept: textIn(body.messages[1]) };
}

function assertWhole({ first, kept }, what) {
  assert.equal(textOf(first), WHOLE, what);
  assert.deepEqual(
    chunksOf(first).map(({ content }) => content.text),
    ANSWER,
    what,
  );
  assert.equal(kept, WHOLE, what);
}

test('FC-A1 a body cut at every offset of an event keeps its characters', async (t) => {
  const { agent, emulator } = await gatewayFor(t, { rules: REPLY });
  const { start, end } = await eventRange(emulator);
  assert.ok(end - start > 100);
  // Also before the first byte of the event and behind its last.
  const offsets = Array.from({ length: end - start + 2 }, (_, at) => start - 1 + at);
  emulator.setRules([...offsets.map(cutAt), { reply: 'ok' }]);
  for (let at = 0; at < offsets.length; at += 16) {
    const group = offsets.slice(at, at + 16).map(async (offset) => {
      assertWhole(await talk(agent, emulator, `cut ${offset}`), `cut at ${offset}`);
    });
    await Promise.all(group);
  }
});

const FORMS = {
  'one byte at a time': { splitBytes: 1 },
  'pieces of three bytes': { splitBytes: 3 },
  'CR LF line ends': { crlf: true },
  'CR LF line ends, one byte at a time': { crlf: true, splitBytes: 1 },
  comments: { comments: true },
  'pings between the events': { pings: 1 },
  'unknown events and deltas': { unknownEvents: true },
  'no event lines': { noEventLine: true },
  'everything at once': {
    crlf: true,
    comments: true,
    pings: 1,
    unknownEvents: true,
    noEventLine: true,
    splitBytes: 5,
  },
};

for (const [name, knobs] of Object.entries(FORMS)) {
  test(`FC-A1 ${name}`, async (t) => {
    const { agent, emulator } = await gatewayFor(t, {
      rules: [{ reply: { text: ANSWER } }],
      knobs,
    });
    assertWhole(await talk(agent, emulator, 'hi'), name);
  });
}

test('FC-A1 thinking, tool inputs and results keep their characters', async (t) => {
  const inputs = [];
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'ok' },
      {
        reply: {
          thinking: `想 ${CITY}`,
          text: CITY,
          toolCalls: [{ name: 'echo', input: { [CITY]: CITY }, fragments: 40 }],
        },
      },
    ],
    knobs: { splitBytes: 1, textChunk: 1 },
    tools: [
      {
        name: 'echo',
        description: CITY,
        parameters: { type: 'object' },
        execute: (input) => {
          inputs.push(input);
          return input[CITY];
        },
      },
    ],
  });
  await send(CITY);
  assert.deepEqual(inputs, [{ [CITY]: CITY }]);
  const [prompt, answer, result] = messages(-1);
  assert.equal(textIn(prompt), CITY);
  assert.equal(answer.content[0].thinking, `想 ${CITY}`);
  assert.equal(answer.content[1].text, CITY);
  assert.equal(result.content[0].content, CITY);
});

test('FC-A1 a pair that the gateway itself cuts into two events is whole again', async (t) => {
  const [high, low] = ['\ud83d', '\ude00'];
  const { send, messages, emulator } = await gatewayFor(t, {
    rules: [{ times: 1, reply: { text: [`Hello ${high}`, `${low} bye`] } }, { reply: 'ok' }],
    model: { maxRetries: 0, restart: 'never' },
  });
  const elements = await send('hi');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(textOf(elements), 'Hello 😀 bye');
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'Hello 😀 bye');
  assert.equal(emulator.requests.length, 2);
});

test('FC-B7 half a pair that never becomes whole does not fail the run', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [{ times: 1, reply: { text: ['cut \ud83d', ' here'] } }, { reply: 'ok' }],
    model: { maxRetries: 0, restart: 'never' },
  });
  const elements = await send('hi');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(textOf(elements), 'cut \ufffd here');
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'cut \ufffd here');
});

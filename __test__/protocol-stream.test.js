import assert from 'node:assert/strict';

import { text, thinking } from '../emulator/index.js';
import { both } from './support/format-protocols.js';
import {
  chunksOf,
  errorOf,
  idleOf,
  readStream,
  restartsOf,
  textOf,
  thoughtOf,
} from './support/gateway-elements.js';
import { textIn, tool } from './support/gateway.js';

const CITY = '北京😀';
const DELTAS = ['Hello ', CITY, ' bye'];
const WHOLE = DELTAS.join('');
/** An answer that has the same bytes every time. */
const FIXED = { id: 'fixed', text: DELTAS, usage: { input_tokens: 5, output_tokens: 5 } };
const OVERLOADED = { type: 'overloaded_error', message: 'Overloaded just now' };
const INVALID = { type: 'invalid_request_error', message: 'glm is unknown here' };
const ONE_TRY = { maxRetries: 0, restart: 'never' };

/** Bytes of an answer, of which the time of day is a part without changing its length. */
async function bodyOf(emulator, path) {
  const response = await fetch(`${emulator.gatewayUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${emulator.apiKey}` },
    body: JSON.stringify({
      model: 'glm',
      max_tokens: 9,
      stream: true,
      messages: [{ role: 'user', content: 'measure' }],
    }),
  });
  return Buffer.from(await response.arrayBuffer());
}

/** Talks twice: the second request shows what was kept of the first answer. */
async function assertWhole({ agent, emulator }, toMessages, prompt) {
  const session = await agent.startSession({ userId: 'ann' });
  const elements = await readStream(session.send(prompt));
  assert.deepEqual(
    chunksOf(elements).map(({ content }) => content.text),
    DELTAS,
    prompt,
  );
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  await readStream(session.send(`after ${prompt}`));
  const sent = emulator.requests
    .map(({ body }) => toMessages(body).messages)
    .find(
      (messages) =>
        messages.length === 3 && JSON.stringify(messages[2]).includes(`after ${prompt}"`),
    );
  assert.equal(textIn({ content: [sent[1].content].flat() }), WHOLE, prompt);
}

both('FC-A1 a body cut at every offset keeps its characters', async (t, protocol, agentFor) => {
  const { agent, emulator } = await agentFor({ rules: FIXED });
  const body = await bodyOf(emulator, protocol.path);
  const middle = body.indexOf(CITY);
  const start = body.lastIndexOf('\n\n', middle) - 1;
  const end = body.indexOf('\n\n', middle) + 3;
  assert.ok(middle > 0 && end - start > 90);
  const offsets = Array.from({ length: end - start }, (_, at) => start + at);
  emulator.setRules([
    ...offsets.map((offset) => ({
      when: { user: new RegExp(`^cut ${offset}$`) },
      reply: { ...FIXED, knobs: { splitAt: [offset], splitDelayMs: 1 } },
    })),
    { reply: 'ok' },
  ]);
  for (let at = 0; at < offsets.length; at += 16) {
    const group = offsets.slice(at, at + 16);
    await Promise.all(
      group.map((offset) => assertWhole({ agent, emulator }, protocol.toMessages, `cut ${offset}`)),
    );
  }
});

const FORMS = {
  'one byte at a time': { splitBytes: 1 },
  'CR LF line ends, three bytes at a time': { crlf: true, splitBytes: 3 },
  'comments and pings': { comments: true, pings: 1 },
  'unknown events': { unknownEvents: true },
  'everything at once': {
    crlf: true,
    comments: true,
    pings: 1,
    unknownEvents: true,
    splitBytes: 5,
  },
};

for (const [name, knobs] of Object.entries(FORMS)) {
  both(`FC-A1 ${name}`, async (t, protocol, agentFor) => {
    const gateway = await agentFor({ rules: FIXED, knobs });
    await assertWhole(gateway, protocol.toMessages, 'hi');
  });
}

both('FC-A1 reasoning, inputs and results keep their characters', async (t, protocol, agentFor) => {
  const inputs = [];
  const { send } = await agentFor({
    rules: [
      { when: { hasToolResult: true }, reply: '{{toolResult}}' },
      {
        reply: {
          thinking: `想 ${CITY}`,
          toolCalls: [{ name: 'echo', input: { [CITY]: CITY }, fragments: 40 }],
        },
      },
    ],
    knobs: { splitBytes: 1, textChunk: 1 },
    tools: [tool('echo', (input) => (inputs.push(input), input[CITY]))],
  });
  const elements = await send(CITY);
  assert.deepEqual(inputs, [{ [CITY]: CITY }]);
  assert.equal(thoughtOf(elements), `想 ${CITY}`);
  assert.equal(textOf(elements), CITY);
});

both('FC-A1 a pair cut into two events is whole again', async (t, protocol, agentFor) => {
  const { send } = await agentFor({
    rules: text(['Hello \ud83d', '\ude00 bye']),
    model: ONE_TRY,
  });
  assert.equal(textOf(await send('hi')), 'Hello 😀 bye');
});

both('FC-B7 half a pair for good becomes U+FFFD', async (t, protocol, agentFor) => {
  const { send, messages } = await agentFor({ rules: [{ reply: text(['a \ud83d', ' b']) }] });
  const elements = await send('half \udc00');
  assert.equal(textOf(elements), 'a \ufffd b');
  assert.equal(textIn(messages(-1)[0]), 'half \ufffd');
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'a \ufffd b');
});

for (const [name, more] of Object.entries({ silence: {}, 'pings alone': { stallPings: 10 } })) {
  both(`FC-A2 ${name} in mid stream is a timeout`, async (t, protocol, agentFor) => {
    const { send, emulator } = await agentFor({
      rules: [{ reply: text(['one', 'two']), knobs: { stallAfter: protocol.after(1), ...more } }],
      model: ONE_TRY,
      limits: { idleMs: 150 },
    });
    const elements = await send('hi');
    const error = errorOf(elements);
    assert.deepEqual([error.code, error.retryable], ['E_MODEL_TIMEOUT', true]);
    assert.match(error.message, /idleMs/);
    assert.equal(textOf(elements), 'one');
    await emulator.idle();
    assert.equal(emulator.requests[0].aborted, true);
  });
}

both('FC-A2 a stall before any text is repeated without a word', async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: [{ times: 1, reply: 'lost', knobs: { stallAfter: 1 } }, { reply: 'here' }],
    limits: { idleMs: 150 },
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'here');
  assert.deepEqual(restartsOf(elements), []);
  assert.equal(emulator.requests.length, 2);
});

// Gateways mix the forms: an error of one protocol comes through the endpoint of the other.
for (const foreignErrors of [false, true]) {
  const form = foreignErrors ? 'in the form of the other protocol' : 'in its own form';
  const failing = (events, error) => ({ foreignErrors, errorAfter: { events, error } });

  both(
    `FC-A3 an overload as the first event is repeated (${form})`,
    async (t, protocol, agentFor) => {
      const { send, emulator } = await agentFor({
        rules: [{ times: 1, reply: 'x', knobs: failing(0, OVERLOADED) }, { reply: 'here' }],
      });
      const elements = await send('hi');
      assert.equal(textOf(elements), 'here');
      assert.deepEqual(restartsOf(elements), []);
      assert.equal(emulator.requests.length, 2);
    },
  );

  both(`FC-A3 an overload after text voids it (${form})`, async (t, protocol, agentFor) => {
    const { send, messages } = await agentFor({
      rules: [
        {
          times: 1,
          reply: text(['Lost ', 'words', '!']),
          knobs: failing(protocol.after(2), OVERLOADED),
        },
        { reply: 'Kept.' },
      ],
    });
    const elements = await send('hi');
    assert.equal(restartsOf(elements)[0].restartReason, 'error_event');
    assert.equal(textOf(elements), 'Kept.');
    await send('more');
    assert.doesNotMatch(JSON.stringify(messages(-1)), /Lost|Overloaded/);
  });

  both(`FC-A3 restart: 'never' tells the overload (${form})`, async (t, protocol, agentFor) => {
    const { send, emulator } = await agentFor({
      rules: [
        { reply: text(['Lost ', 'words', '!']), knobs: failing(protocol.after(2), OVERLOADED) },
      ],
      model: { restart: 'never' },
    });
    const error = errorOf(await send('hi'));
    assert.deepEqual(
      [error.code, error.status, error.retryable],
      ['E_MODEL_OVERLOADED', 529, true],
    );
    assert.equal(error.requestId, emulator.requests[0].id);
    assert.match(error.message, /Overloaded just now/);
  });

  both(`FC-A3 a refusal as the first event is told (${form})`, async (t, protocol, agentFor) => {
    const { send, emulator } = await agentFor({
      rules: [{ times: 1, reply: 'x', knobs: failing(0, INVALID) }, { reply: 'fine' }],
    });
    const error = errorOf(await send('hi'));
    assert.deepEqual([error.code, error.retryable], ['E_MODEL_REQUEST', false]);
    assert.match(error.message, /glm is unknown here/);
    assert.equal(emulator.requests.length, 1);
    assert.equal(textOf(await send('more')), 'fine');
  });
}

both('an answer that comes as JSON is taken as it is', async (t, protocol, agentFor) => {
  const { send } = await agentFor({
    rules: [
      { when: { hasToolResult: true }, reply: thinking('So.', WHOLE) },
      { reply: { text: 'Let me.', toolCalls: [{ name: 'now', input: { a: CITY } }] } },
    ],
    knobs: { json: true },
    tools: [tool('now', ({ a }) => a)],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), `Let me.${WHOLE}`);
  assert.equal(thoughtOf(elements), 'So.');
});

for (const [name, knobs] of Object.entries({
  'broken JSON': { invalidJsonAfter: 1 },
  'a web page': { html: true },
})) {
  both(`${name} is a fault of the gateway`, async (t, protocol, agentFor) => {
    const { send } = await agentFor({ rules: [{ reply: 'x', knobs }], model: ONE_TRY });
    assert.equal(errorOf(await send('hi')).code, 'E_MODEL_PROTOCOL');
  });
}

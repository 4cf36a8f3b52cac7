import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, text, toolCall } from '../emulator/index.js';
import { both } from './support/format-protocols.js';
import {
  chunksOf,
  errorOf,
  errorsOf,
  idleOf,
  readStream,
  restartsOf,
  textOf,
  totalsOf,
} from './support/gateway-elements.js';
import { SOON, gatewayFor, textIn, tool } from './support/gateway.js';

const COUNTS = {
  startUsage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 1 },
  usage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 47 },
};
const TOTALS = {
  inputTokens: 27,
  outputTokens: 47,
  cacheCreationInputTokens: 0,
  cacheReadInputTokens: 10,
};
const twice = (totals) =>
  Object.fromEntries(Object.entries(totals).map(([key, value]) => [key, value * 2]));
const NOW = tool('now', () => 'noon');

both(
  'FC-A7 each request is counted once, a run sums its requests',
  async (t, protocol, agentFor) => {
    const { send, session } = await agentFor({
      rules: [
        { when: { hasToolResult: true }, reply: text('Done.', COUNTS) },
        { when: { user: 'time' }, reply: toolCall('now', {}, COUNTS) },
        { reply: text('Hello.', COUNTS) },
      ],
      tools: [NOW],
    });
    const one = await send('hi');
    assert.deepEqual(totalsOf(one), TOTALS);
    const two = await send('time?');
    assert.deepEqual(totalsOf(two), twice(TOTALS));
    const { used, size } = two.findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update');
    assert.deepEqual([used, size], [84, 200_000]);
    const { usage, numTurns } = await session.prompt('time again?');
    assert.deepEqual([usage, numTurns], [twice(TOTALS), 2]);
  },
);

both('FC-A7 an attempt that broke off is not counted', async (t, protocol, agentFor) => {
  const { send } = await agentFor({
    rules: [
      { times: 1, reply: text(['one', 'two'], COUNTS), knobs: { resetAfter: protocol.after(1) } },
      { reply: text('whole', COUNTS) },
    ],
  });
  assert.deepEqual(totalsOf(await send('hi')), TOTALS);
});

both('FC-A7 no counts at all are counts of nothing', async (t, protocol, agentFor) => {
  const none = { input_tokens: null, output_tokens: null };
  const { send } = await agentFor({ rules: text('hi', { usage: none, startUsage: none }) });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'hi');
  assert.ok(Object.values(totalsOf(elements)).every((count) => count === 0));
});

for (const stopReason of [
  'end_turn',
  'stop_sequence',
  'refusal',
  'model_context_window_exceeded',
  'something_new',
]) {
  both(
    `FC-A8 the stop reason ${stopReason} ends the run and is told`,
    async (t, protocol, agentFor) => {
      const { send, session, emulator } = await agentFor({
        rules: text('So far.', { stopReason }),
      });
      const elements = await send('hi');
      assert.equal(idleOf(elements).stopReason, stopReason);
      assert.equal(textOf(elements), 'So far.');
      assert.deepEqual(errorsOf(elements), []);
      assert.equal(emulator.requests.length, 1);
      assert.equal((await session.prompt('again')).stopReason, stopReason);
    },
  );
}

for (const status of [408, 429, 500, 503, 529]) {
  both(`${status} is tried again without a word`, async (t, protocol, agentFor) => {
    const { send, emulator } = await agentFor({
      rules: [{ times: 2, reply: httpError(status, {}, SOON) }, { reply: 'here' }],
    });
    const elements = await send('hi');
    assert.equal(textOf(elements), 'here');
    assert.deepEqual([restartsOf(elements), errorsOf(elements)], [[], []]);
    assert.equal(emulator.requests.length, 3);
    const [first, ...others] = emulator.requests.map(({ body }) => body);
    for (const other of others) assert.deepEqual(other, first);
  });
}

both('the error says how often was tried', async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: httpError(503, {}, SOON),
    model: { maxRetries: 2 },
  });
  const error = errorOf(await send('hi'));
  assert.deepEqual([error.code, error.details.attempts], ['E_MODEL_SERVER', 3]);
  assert.equal(emulator.requests.length, 3);
});

for (const [status, code] of Object.entries({
  400: 'E_MODEL_REQUEST',
  403: 'E_MODEL_AUTH',
  404: 'E_MODEL_NOT_FOUND',
  413: 'E_MODEL_REQUEST',
})) {
  for (const foreignErrors of [false, true]) {
    const form = foreignErrors ? 'foreign form' : 'own form';
    both(`${status} is told after one request (${form})`, async (t, protocol, agentFor) => {
      const { send, emulator } = await agentFor({
        rules: [
          { times: 1, reply: httpError(Number(status), { message: 'no, because' }) },
          { reply: 'fine' },
        ],
        knobs: { foreignErrors },
      });
      const error = errorOf(await send('hi'));
      assert.deepEqual([error.code, error.status, error.retryable], [code, Number(status), false]);
      assert.match(error.message, /no, because/);
      assert.equal(emulator.requests.length, 1);
      assert.equal(textOf(await send('more')), 'fine');
    });
  }
}

const TOO_LONG = {
  'Messages API': { message: 'prompt is too long: 250000 tokens > 200000 maximum' },
  'chat completions, words': {
    message: "This model's maximum context length is 8192 tokens, you asked for 9000",
  },
  'chat completions, code': { message: 'too much', code: 'context_length_exceeded' },
};

for (const [name, error] of Object.entries(TOO_LONG)) {
  both(`a conversation that is too long has its code (${name})`, async (t, protocol, agentFor) => {
    const type = 'invalid_request_error';
    const { send, emulator } = await agentFor({
      rules: [
        { times: 1, when: { user: 'status' }, reply: { status: 400, error: { type, ...error } } },
        { reply: 'x', knobs: { errorAfter: { events: 0, error: { type, ...error } } } },
      ],
      // The Messages API has no codes: a gateway that sends one uses the other form.
      knobs: { foreignErrors: protocol.name === 'anthropic' && 'code' in error },
      model: { maxRetries: 0 },
    });
    for (const prompt of ['by status', 'by event']) {
      const { code, retryable } = errorOf(await send(prompt));
      assert.deepEqual([code, retryable], ['E_MODEL_CONTEXT', false], prompt);
    }
    assert.equal(emulator.requests.length, 2);
  });
}

both(
  'max_tokens is lowered once when the gateway names its limit',
  async (t, protocol, agentFor) => {
    const { send, emulator } = await agentFor({
      rules: [
        {
          when: ({ max_tokens: asked }) => asked > 8_192,
          reply: httpError(400, { message: 'max_tokens: 32000 > 8192, the maximum of this model' }),
        },
        { reply: 'here' },
      ],
    });
    assert.equal(textOf(await send('hi')), 'here');
    await send('more');
    assert.deepEqual(
      emulator.requests.map(({ body }) => body.max_tokens),
      [32_000, 8_192, 8_192],
    );
  },
);

test('openai: max_completion_tokens as an option replaces max_tokens', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: 'here',
    model: { protocol: 'openai', options: { max_completion_tokens: 900 } },
  });
  assert.equal(textOf(await send('hi')), 'here');
  const [{ body }] = emulator.requests;
  assert.equal(body.max_completion_tokens, 900);
  assert.ok(!('max_tokens' in body));
});

both('a conversation of many turns stays valid', async (t, protocol, agentFor) => {
  const { session, send, messages, emulator } = await agentFor({
    rules: [
      { when: { hasToolResult: true }, reply: 'It is {{toolResult}}.' },
      { when: { user: 'time' }, reply: toolCall('now', { zone: 'CST' }, { thinking: 'Hm.' }) },
      {
        when: { user: 'stall' },
        reply: text(['a', 'b']),
        knobs: { stallAfter: protocol.after(1) },
      },
      { times: 1, when: { user: 'refuse' }, reply: httpError(400) },
      { times: 2, when: { user: 'nothing' }, reply: '' },
      { reply: 'Answer {{turn}}.' },
    ],
    tools: [NOW],
    systemPrompt: 'Be brief.',
  });
  for (const prompt of ['one', 'time', 'refuse', 'nothing']) await send(prompt);
  assert.match(textOf(await send('three')), /^Answer/);
  for await (const { sessionUpdate } of session.send('stall')) {
    if (sessionUpdate === 'agent_message_chunk') break;
  }
  await session.settled();
  const elements = await send('time');
  assert.equal(textOf(elements), 'It is noon.');
  const roles = messages(-1).map(({ role }) => role);
  roles.forEach((role, at) => assert.notEqual(role, roles[at - 1]));
  assert.equal(textIn(messages(-1)[1]), 'Answer 0.');
  assert.deepEqual(emulator.violations, []);
});

both('sessions of one agent do not see each other', async (t, protocol, agentFor) => {
  const { agent, emulator } = await agentFor({ rules: 'Hello {{user}}.' });
  const users = ['ann', 'bob', 'eve'];
  const sessions = await Promise.all(users.map((userId) => agent.startSession({ userId })));
  const streams = sessions.map((session) => readStream(session.send(`from ${session.userId}`)));
  const texts = (await Promise.all(streams)).map((elements) =>
    chunksOf(elements)
      .map(({ content }) => content.text)
      .join(''),
  );
  assert.deepEqual(texts, ['Hello from ann.', 'Hello from bob.', 'Hello from eve.']);
  assert.equal(emulator.requests.length, 3);
});

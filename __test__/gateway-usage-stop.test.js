import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall } from '../emulator/index.js';
import { endsOf, errorsOf, idleOf, textOf, totalsOf } from './support/gateway-elements.js';
import { gatewayFor, textIn, tool } from './support/gateway.js';

const COUNTS = {
  startUsage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 1 },
  usage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 47 },
};
const ONE_REQUEST = {
  inputTokens: 27,
  outputTokens: 47,
  cacheCreationInputTokens: 0,
  cacheReadInputTokens: 10,
};

function times(count, totals) {
  return Object.fromEntries(Object.entries(totals).map(([key, value]) => [key, value * count]));
}

test('FC-A7 later counts of a request replace earlier ones', async (t) => {
  const { send } = await gatewayFor(t, { rules: text('hi', COUNTS) });
  assert.deepEqual(totalsOf(await send('hi')), ONE_REQUEST);
});

test('FC-A7 counts that only the start or only the end names are kept', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: text('hi', {
      startUsage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: null },
      usage: { input_tokens: null, cache_read_input_tokens: null, output_tokens: 47 },
    }),
  });
  assert.deepEqual(totalsOf(await send('hi')), ONE_REQUEST);
  emulator.setRules([
    {
      reply: text('hi', {
        startUsage: { input_tokens: null, cache_read_input_tokens: null, output_tokens: null },
        usage: { input_tokens: 27, cache_read_input_tokens: 10, output_tokens: 47 },
      }),
    },
  ]);
  assert.deepEqual(totalsOf(await send('hi')), ONE_REQUEST);
});

test('FC-A7 a run sums its requests, each counted once', async (t) => {
  const { session, send } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: text('Done.', COUNTS) },
      { reply: toolCall('now', {}, COUNTS) },
    ],
    tools: [tool('now', () => 'noon')],
  });
  const elements = await send('time?');
  const updates = elements.filter(({ sessionUpdate }) => sessionUpdate === 'usage_update');
  assert.deepEqual(updates[0].totals, ONE_REQUEST);
  assert.deepEqual(updates.at(-1).totals, times(2, ONE_REQUEST));
  // What is in the window is what the last request took and gave, not the sum.
  assert.equal(updates.at(-1).used, 27 + 10 + 47);
  assert.equal(updates.at(-1).size, 200_000);
  assert.equal(elements.indexOf(updates.at(-1)), elements.length - 2, 'just before idle');
  const { usage, numTurns } = await session.prompt('again?');
  assert.deepEqual(usage, times(2, ONE_REQUEST));
  assert.equal(numTurns, 2);
});

test('FC-A7 an attempt that broke off is not counted twice', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['one', 'two'], COUNTS), knobs: { resetAfter: 3 } },
      { reply: text('whole', COUNTS) },
    ],
  });
  assert.deepEqual(totalsOf(await send('hi')), ONE_REQUEST);
});

test('FC-A7 the context window of the model is passed on', async (t) => {
  const { send } = await gatewayFor(t, { rules: 'hi', model: { contextWindow: 64_000 } });
  const update = (await send('hi')).find(({ sessionUpdate }) => sessionUpdate === 'usage_update');
  assert.equal(update.size, 64_000);
});

const ENDINGS = {
  end_turn: 'end_turn',
  stop_sequence: 'stop_sequence',
  refusal: 'refusal',
  model_context_window_exceeded: 'model_context_window_exceeded',
  something_new: 'something_new',
};

for (const [stopReason, told] of Object.entries(ENDINGS)) {
  test(`FC-A8 the stop reason ${stopReason} ends the run and is told`, async (t) => {
    const { emulator, session, send } = await gatewayFor(t, {
      rules: text('So far.', { stopReason, stopSequence: 'END' }),
    });
    const elements = await send('hi');
    assert.equal(idleOf(elements).stopReason, told);
    assert.equal(textOf(elements), 'So far.');
    assert.deepEqual(errorsOf(elements), []);
    assert.equal(emulator.requests.length, 1);
    const result = await session.prompt('again');
    assert.deepEqual([result.stopReason, result.text], [told, 'So far.']);
  });
}

test('FC-A8 no stop reason at all is a normal end', async (t) => {
  const { send } = await gatewayFor(t, { rules: text('So far.', { stopReason: null }) });
  assert.equal(idleOf(await send('hi')).stopReason, 'end_turn');
});

test('FC-A8 pause_turn goes on by sending the answer back', async (t) => {
  const { emulator, send, messages } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text('First part.', { stopReason: 'pause_turn' }) },
      { reply: text(' Second part.') },
    ],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'First part. Second part.');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(emulator.requests.length, 2);
  const sent = messages(1);
  assert.deepEqual(
    sent.map(({ role }) => role),
    ['user', 'assistant'],
  );
  assert.equal(textIn(sent[1]), 'First part.');
  // The parts are one answer in later requests.
  await send('more');
  assert.deepEqual(
    messages(-1).map(({ role }) => role),
    ['user', 'assistant', 'user'],
  );
  assert.equal(textIn(messages(-1)[1]), 'First part. Second part.');
});

test('FC-A8 a model that always pauses does not go on for ever', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: () => text('.', { stopReason: 'pause_turn' }),
  });
  const elements = await send('hi');
  assert.equal(idleOf(elements).stopReason, 'pause_turn');
  assert.ok(emulator.requests.length <= 6, `${emulator.requests.length} requests`);
});

test('FC-A8 calls run whatever the reason says, unless it is a refusal or a cut', async (t) => {
  for (const stopReason of ['end_turn', 'stop_sequence', 'pause_turn', 'something_new', null]) {
    let runs = 0;
    const { send } = await gatewayFor(t, {
      rules: [
        { when: { hasToolResult: true }, reply: 'Done.' },
        { reply: toolCall('now', {}, { stopReason }) },
      ],
      tools: [tool('now', () => (runs += 1))],
    });
    const elements = await send('time?');
    assert.equal(runs, 1, `${stopReason}`);
    assert.equal(idleOf(elements).stopReason, 'end_turn');
  }
});

for (const stopReason of ['refusal', 'model_context_window_exceeded']) {
  test(`FC-A8 ${stopReason} with a call ends the run, and the call does not run`, async (t) => {
    let runs = 0;
    const { emulator, send } = await gatewayFor(t, {
      rules: [{ times: 1, reply: toolCall('now', {}, { stopReason }) }, { reply: 'fine' }],
      tools: [tool('now', () => (runs += 1))],
    });
    const elements = await send('time?');
    assert.equal(runs, 0);
    assert.equal(endsOf(elements)[0][1], 'failed');
    assert.equal(idleOf(elements).stopReason, stopReason);
    assert.equal(emulator.requests.length, 1);
    assert.equal(textOf(await send('and now?')), 'fine');
  });
}

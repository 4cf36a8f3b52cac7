import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall, toolCalls } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { endsOf, errorsOf, idleOf, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { aborted, gatewayFor, resultsIn, tool } from './support/gateway.js';

const STEP = tool('step', () => 'stepped');
/** A model that never stops calling. */
const endless = (more) => () => toolCall('step', {}, { text: 'On.', ...more });
const usage = (input, output) => ({ usage: { input_tokens: input, output_tokens: output } });

for (const [name, config] of Object.entries({
  'limits.maxTurns': { limits: { maxTurns: 3 } },
  'maxTurns at top level': { maxTurns: 3 },
})) {
  test(`loop: ${name} ends a run after so many requests`, async (t) => {
    const { emulator, send, messages } = await gatewayFor(t, {
      rules: [{ when: { user: 'more' }, reply: 'fine' }, { reply: endless() }],
      tools: [STEP],
      ...config,
    });
    const elements = await send('go');
    assert.equal(idleOf(elements).stopReason, 'max_turns');
    assert.deepEqual(errorsOf(elements), []);
    assert.equal(emulator.requests.length, 3);
    assert.equal(endsOf(elements).length, 3);
    // Each run counts anew, and the last calls have their results.
    assert.equal(textOf(await send('more')), 'fine');
    assert.equal(resultsIn(messages(-1).at(-1)).length, 1);
  });
}

test('loop: a run that is done in time does not feel maxTurns', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [{ when: { hasToolResult: true }, reply: 'Done.' }, { reply: endless() }],
    tools: [STEP],
    limits: { maxTurns: 2 },
  });
  assert.equal(idleOf(await send('go')).stopReason, 'end_turn');
});

test('loop: maxTurns 0 is no limit', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ when: { turn: 20 }, reply: 'Done.' }, { reply: endless() }],
    tools: [STEP],
    limits: { maxTurns: 0 },
  });
  assert.equal(idleOf(await send('go')).stopReason, 'end_turn');
  assert.equal(emulator.requests.length, 21);
});

test('loop: 250 requests by default', async (t) => {
  const { emulator, send } = await gatewayFor(t, { rules: endless(), tools: [STEP] });
  assert.equal(idleOf(await send('go')).stopReason, 'max_turns');
  assert.equal(emulator.requests.length, 250);
});

test('loop: maxTokensPerTurn ends a run when its requests used so many tokens', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: endless(usage(100, 20)),
    tools: [STEP],
    limits: { maxTokensPerTurn: 300 },
  });
  const elements = await send('go');
  // 120, 240, 360.
  assert.equal(emulator.requests.length, 3);
  assert.equal(idleOf(elements).stopReason, 'budget');
  assert.equal(endsOf(elements).length, 3);
});

test('loop: maxCost with prices ends a run', async (t) => {
  const prices = { input: 1, output: 10, cacheRead: 0.1, cacheWrite: 1.25 };
  const { emulator, send } = await gatewayFor(t, {
    rules: endless({
      usage: {
        input_tokens: 1_000,
        output_tokens: 100,
        cache_read_input_tokens: 10_000,
        cache_creation_input_tokens: 800,
      },
    }),
    tools: [STEP],
    // One request costs 0.004.
    limits: { maxCost: 0.0119, prices },
  });
  assert.equal(idleOf(await send('go')).stopReason, 'budget');
  assert.equal(emulator.requests.length, 3);
});

test('loop: maxCost without prices is refused', () => {
  const config = { envId: 'x', model: 'glm', limits: { maxCost: 1 } };
  assert.throws(() => createAgent(config), { code: 'E_INVALID_CONFIG', message: /prices/ });
});

test('loop: maxMs stops a tool, and the session goes on', async (t) => {
  const stopped = deferred();
  const { send, messages } = await gatewayFor(t, {
    rules: [{ when: { user: 'more' }, reply: 'fine' }, { reply: endless() }],
    tools: [
      tool('step', (_, { signal }) => {
        aborted(signal).then(stopped.resolve);
        return new Promise(() => {});
      }),
    ],
    limits: { maxMs: 300 },
  });
  const elements = await send('go');
  assert.equal(idleOf(elements).stopReason, 'budget');
  assert.equal(idleOf(elements).cause, undefined);
  assert.deepEqual(errorsOf(elements), []);
  await stopped.promise;
  assert.equal(textOf(await send('more')), 'fine');
  assert.match(resultsIn(messages(-1)[2])[0][1], /interrupted/);
});

test('loop: maxMs stops a stream that is silent', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: text(['one', 'two']), knobs: { stallAfter: 3 } }, { reply: 'fine' }],
    limits: { maxMs: 300 },
  });
  const elements = await send('go');
  assert.equal(idleOf(elements).stopReason, 'budget');
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
  assert.equal(textOf(await send('more')), 'fine');
});

test('loop: maxMs ends a model that calls for ever', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: endless(),
    knobs: { latencyMs: 20 },
    tools: [STEP],
    limits: { maxMs: 300 },
  });
  assert.equal(idleOf(await send('go')).stopReason, 'budget');
});

test('loop: prompt() gives the stop reason of a limit', async (t) => {
  const { session } = await gatewayFor(t, {
    rules: endless(),
    tools: [STEP],
    limits: { maxTurns: 2 },
  });
  const result = await session.prompt('go');
  assert.deepEqual([result.stopReason, result.numTurns, result.text], ['max_turns', 2, 'On.']);
});

test('loop: model settings reach the request', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: 'ok',
    model: { id: 'glm-4.6', maxTokens: 1_234, temperature: 0.5 },
    systemPrompt: 'Be brief.',
  });
  await send('hi');
  const { path, headers, body } = emulator.requests[0];
  assert.match(path, /\/v1\/messages$/);
  assert.deepEqual(
    [headers['content-type'], headers['anthropic-version']],
    ['application/json', '2023-06-01'],
  );
  const { system, messages, ...rest } = body;
  assert.equal(system[0].text, 'Be brief.');
  assert.equal(messages.length, 1);
  assert.deepEqual(rest, { model: 'glm-4.6', max_tokens: 1_234, temperature: 0.5, stream: true });
});

test('loop: the answers of cut calls count as requests, too', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: () => toolCalls([{ name: 'step', raw: '{"a' }], { stopReason: 'max_tokens' }),
    tools: [STEP],
    limits: { maxTurns: 2 },
  });
  assert.equal(idleOf(await send('go')).stopReason, 'max_turns');
  assert.equal(emulator.requests.length, 2);
});

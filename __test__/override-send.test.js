import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startEmulator, text, toolCall } from '../emulator/index.js';
import { collect } from './support/boundary.js';
import { errorOf, idleOf, readStream, textOf, totalsOf } from './support/gateway-elements.js';
import { gatewayFor, tool } from './support/gateway.js';

const models = ({ requests }) => requests.map(({ body }) => body.model);
const rejects = (promise, message) =>
  assert.rejects(promise, { name: 'InvalidConfigError', code: 'E_INVALID_CONFIG', message });

test('override: a model id holds for one run and keeps the other settings', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: 'Hello.',
    model: {
      maxTokens: 777,
      temperature: 0.5,
      headers: { 'x-mine': 'yes' },
      options: { top_k: 3 },
    },
  });
  await send('one');
  await send('two', { model: 'other' });
  await send('three');
  assert.deepEqual(models(emulator), ['glm', 'other', 'glm']);
  for (const { body, headers } of emulator.requests) {
    assert.deepEqual([body.max_tokens, body.temperature, body.top_k], [777, 0.5, 3]);
    assert.equal(headers['x-mine'], 'yes');
  }
  // The conversation is one.
  assert.deepEqual(
    emulator.requests.map(({ body }) => body.messages.length),
    [1, 3, 5],
  );
});

test('override: a model with settings stands for itself', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: 'Hello.',
    model: { maxTokens: 777, temperature: 0.5, headers: { 'x-mine': 'yes' }, contextWindow: 9_000 },
  });
  const { gatewayUrl: apiBaseUrl, apiKey } = emulator;
  const elements = await send('two', {
    model: { id: 'other', apiBaseUrl, apiKey, maxTokens: 99, contextWindow: 5_000 },
  });
  assert.equal(elements.find(({ sessionUpdate }) => sessionUpdate === 'usage_update').size, 5_000);
  const [{ body, headers }] = emulator.requests;
  assert.deepEqual([body.model, body.max_tokens, body.temperature], ['other', 99, undefined]);
  assert.equal(headers['x-mine'], undefined);
});

test('override: a model may speak another protocol, at another gateway', async (t) => {
  const other = await startEmulator({ rules: [{ reply: 'From the other.' }], apiKey: 'other-key' });
  t.after(async () => {
    assert.deepEqual(other.violations, []);
    await other.close();
  });
  const { send, emulator } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'It is noon.' },
      { reply: toolCall('now', {}) },
    ],
    tools: [tool('now', () => 'noon')],
  });
  await send('time?');
  const model = {
    id: 'chatty',
    protocol: 'openai',
    apiBaseUrl: other.gatewayUrl,
    apiKey: 'other-key',
  };
  assert.equal(textOf(await send('and you?', { model })), 'From the other.');
  assert.equal(textOf(await send('time?')), 'It is noon.');
  assert.equal(emulator.requests.length, 4);
  const [{ path, headers, body }] = other.requests;
  assert.match(path, /\/chat\/completions$/);
  assert.equal(headers.authorization, 'Bearer other-key');
  assert.deepEqual(
    body.messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'user'],
  );
});

test('override: a list of models falls back within one run', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: [{ when: { model: 'busy' }, reply: { status: 529 } }, { reply: 'Hello.' }],
  });
  const { gatewayUrl: apiBaseUrl, apiKey } = emulator;
  const spec = (id) => ({ id, apiBaseUrl, apiKey, maxRetries: 0 });
  const elements = await send('hi', { model: [spec('busy'), spec('calm')] });
  assert.equal(textOf(elements), 'Hello.');
  assert.equal(textOf(await send('more')), 'Hello.');
  assert.deepEqual(models(emulator), ['busy', 'calm', 'glm']);
});

test('override: maxTokens holds for one run', async (t) => {
  const { send, emulator } = await gatewayFor(t, { rules: 'Hello.', model: { maxTokens: 777 } });
  await send('one', { maxTokens: 12 });
  await send('two', { maxTokens: 34, model: 'other' });
  await send('three');
  assert.deepEqual(
    emulator.requests.map(({ body }) => [body.model, body.max_tokens]),
    [
      ['glm', 12],
      ['other', 34],
      ['glm', 777],
    ],
  );
});

test('override: limits of a run replace those that they name', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [
      { times: 1, when: { user: 'stall' }, reply: text(['one', 'two']), knobs: { stallAfter: 3 } },
      { reply: toolCall('now', {}) },
    ],
    model: { maxRetries: 0, restart: 'never' },
    tools: [tool('now', () => 'noon')],
    limits: { maxTurns: 3, idleMs: 60_000 },
  });
  const turnsOf = (elements) =>
    elements.filter(({ status }) => status === 'completed' || status === 'failed').length;
  const three = await send('go');
  assert.deepEqual([idleOf(three).stopReason, turnsOf(three)], ['max_turns', 3]);
  const one = await send('go', { limits: { maxTurns: 1 } });
  assert.deepEqual([idleOf(one).stopReason, turnsOf(one)], ['max_turns', 1]);
  const budget = await send('go', { limits: { maxTokensPerTurn: 1 } });
  assert.equal(idleOf(budget).stopReason, 'budget');
  assert.ok(totalsOf(budget).outputTokens > 0);
  const cost = await send('go', { limits: { maxCost: 1e-9, prices: { input: 1, output: 1 } } });
  assert.equal(idleOf(cost).stopReason, 'budget');
  const stalled = await send('stall', { limits: { idleMs: 100 } });
  assert.equal(errorOf(stalled).code, 'E_MODEL_TIMEOUT');
  const again = await send('go');
  assert.deepEqual([idleOf(again).stopReason, turnsOf(again)], ['max_turns', 3]);
});

test('override: time and tool limits of a run hold', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Done.' },
      { when: { user: 'work' }, reply: toolCall('work', {}) },
      { reply: 'x', knobs: { hangHeaders: true } },
    ],
    tools: [tool('work', () => new Promise(() => {}))],
  });
  const elements = await send('hang', { limits: { maxMs: 100 } });
  assert.equal(idleOf(elements).stopReason, 'budget');
  assert.match(
    JSON.stringify(await send('work', { limits: { toolTimeoutMs: 50, maxMs: 10_000 } })),
    /within 50 ms/,
  );
});

const WRONG = {
  'an empty model id': [{ model: ' ' }, /model/],
  'a model of a wrong type': [{ model: 5 }, /model/],
  'a model without id': [{ model: { maxTokens: 5 } }, /model\.id/],
  'an empty list of models': [{ model: [] }, /model/],
  'a wrong model in a list': [{ model: ['glm', { id: 5 }] }, /model\[1\]\.id/],
  'an unknown setting of a model': [{ model: { id: 'a', nope: 1 } }, /nope/],
  'a reserved option': [{ model: { id: 'a', options: { stream: false } } }, /options\.stream/],
  'a reserved header': [{ model: { id: 'a', headers: { Host: 'x' } } }, /headers\.Host/],
  'a wrong protocol': [{ model: { id: 'a', protocol: 'gemini' } }, /protocol/],
  'no tokens': [{ maxTokens: 0 }, /maxTokens/],
  'half a token': [{ maxTokens: 1.5 }, /maxTokens/],
  'a wrong type of limits': [{ limits: 5 }, /limits/],
  'a negative limit': [{ limits: { maxTurns: -1 } }, /limits\.maxTurns/],
  'an unknown limit': [{ limits: { nope: 1 } }, /limits\.nope/],
  'a cost without prices': [{ limits: { maxCost: 1 } }, /maxCost.*prices/],
  'an unknown option': [{ nope: 1 }, /nope/],
};

for (const [name, [options, message]] of Object.entries(WRONG)) {
  test(`override: ${name} is refused by the first next()`, async (t) => {
    const { session, send, emulator } = await gatewayFor(t, { rules: 'fine' });
    const stream = session.send('hi', options);
    await rejects(stream.next(), message);
    assert.deepEqual(await stream.next(), { value: undefined, done: true });
    assert.equal(emulator.requests.length, 0);
    assert.equal(textOf(await send('hi')), 'fine');
  });
}

test("override: the format 'events' is not restarted by a model of one run", async (t) => {
  const { session, emulator } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: 'Kept.' },
    ],
    streamFormat: 'events',
  });
  const { gatewayUrl: apiBaseUrl, apiKey } = emulator;
  const model = { id: 'other', apiBaseUrl, apiKey };
  const elements = await collect(session.send('hi', { model }));
  // This format has no word for text that is void.
  assert.deepEqual(
    elements.map(({ type }) => type),
    ['message_delta', 'message_delta', 'error', 'session_idle'],
  );
  assert.equal(emulator.requests.length, 1);
});

test('override: runs of several sessions do not mix their models', async (t) => {
  const { agent, emulator } = await gatewayFor(t, { rules: '{{model}} says {{user}}.' });
  const ids = ['a', 'b', 'c', 'd'];
  const runs = ids.map(async (id) => {
    const session = await agent.startSession({ userId: id });
    return textOf(await readStream(session.send(id, { model: `model-${id}` })));
  });
  assert.deepEqual(
    await Promise.all(runs),
    ids.map((id) => `model-${id} says ${id}.`),
  );
  assert.equal(emulator.requests.length, 4);
});

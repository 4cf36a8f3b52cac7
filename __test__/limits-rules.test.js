/** Limits of tools and costs, secrets that a gateway quotes, and answers in parts. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { startEmulator, text, toolCall } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { PROTOCOLS, both } from './support/format-protocols.js';
import {
  endsOf,
  errorOf,
  errorsOf,
  idleOf,
  readStream,
  textOf,
  thoughtOf,
} from './support/gateway-elements.js';
import { collect, deferred, errorOf as rejection, eventually } from './support/boundary.js';
import { gatewayFor, aborted, resultsIn, tool } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };
const WORK = { reply: toolCall('work', {}, { id: 'call_1' }) };
const ENDLESS = {
  reply: () => toolCall('work', {}, { usage: { input_tokens: 9, output_tokens: 9 } }),
};
const IN_TIME = { timeout: 30_000 };
const SECRET = 'sk-hunter2-0123456789abcdef';

both('limits: toolTimeoutMs of one send ends a tool that never settles', async (t, _, agentFor) => {
  const stopped = deferred();
  const work = (input, { signal }) => {
    aborted(signal).then(stopped.resolve);
    return new Promise(() => {});
  };
  const { send, messages } = await agentFor({
    rules: [THEN_DONE, WORK],
    tools: [tool('work', work)],
    limits: { toolTimeoutMs: 3_600_000 },
  });
  const elements = await send('go', { limits: { toolTimeoutMs: 50 } });
  const [[id, status, message]] = endsOf(elements);
  assert.deepEqual([id, status], ['call_1', 'failed']);
  assert.match(message, /50 ms/);
  assert.match(resultsIn(messages(1)[2])[0][1], /50 ms/);
  assert.equal(textOf(elements), 'Done.');
  assert.deepEqual(errorsOf(elements), []);
  await stopped.promise;
});

test('limits: toolTimeoutMs 0 of one send takes the limit of the agent away', async (t) => {
  const work = () => new Promise((resolve) => setTimeout(resolve, 200, 'worked'));
  const { send } = await gatewayFor(t, {
    rules: [THEN_DONE, WORK],
    tools: [tool('work', work)],
    limits: { toolTimeoutMs: 20 },
  });
  const elements = await send('go', { limits: { toolTimeoutMs: 0 } });
  assert.deepEqual(endsOf(elements), [['call_1', 'completed', 'worked']]);
});

for (const [name, { more, limits }] of Object.entries({
  'the limit of the tool': { more: { timeoutMs: 50 } },
  'the limit of the agent': { limits: { toolTimeoutMs: 50 } },
})) {
  test(`limits: a check of the input that never settles is under ${name}`, IN_TIME, async (t) => {
    let runs = 0;
    const parameters = {
      '~standard': {
        version: 1,
        vendor: 'slow',
        validate: () => new Promise(() => {}),
        jsonSchema: { input: () => ({ type: 'object', properties: {} }) },
      },
    };
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, WORK],
      tools: [tool('work', () => (runs += 1), { parameters, ...more })],
      limits,
    });
    const elements = await send('go');
    assert.equal(endsOf(elements)[0][1], 'failed');
    const [[, told, isError]] = resultsIn(messages(1)[2]);
    assert.match(told, /50 ms/);
    assert.equal(isError, true);
    assert.equal(textOf(elements), 'Done.');
    assert.equal(runs, 0);
  });
}

const PRICES = { input: 1e6, output: 1e6 };

for (const limits of [{ maxCost: 0, prices: PRICES }, { maxTokensPerTurn: 0 }, { maxMs: 0 }]) {
  test(`limits: ${JSON.stringify(limits)} is no limit`, async (t) => {
    const { send } = await gatewayFor(t, {
      rules: [{ when: { turn: 5 }, reply: 'Done.' }, ENDLESS],
      tools: [tool('work', () => 'worked')],
      limits,
    });
    assert.equal(idleOf(await send('go')).stopReason, 'end_turn');
  });
}

test('limits: maxCost 0 is none, so it needs no prices', () => {
  createAgent({ envId: 'e', model: { id: 'glm', apiKey: 'k' }, limits: { maxCost: 0 } });
});

test('limits: 0 for one send takes the limits of the agent away', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [{ when: { user: 'free', turn: 5 }, reply: 'Done.' }, ENDLESS],
    tools: [tool('work', () => 'worked')],
    limits: { maxCost: 1, prices: PRICES, maxTokensPerTurn: 1 },
  });
  const limits = { maxCost: 0, maxTokensPerTurn: 0 };
  assert.equal(idleOf(await send('free', { limits })).stopReason, 'end_turn');
  assert.equal(idleOf(await send('go')).stopReason, 'budget');
});

/** Everything that a program may print of a value. */
function shown(value) {
  const all = inspect(value, { depth: 20, showHidden: true, maxStringLength: null });
  return `${all}${JSON.stringify(value)}${value.message}${value.stack}`;
}

const quoting = (message) => ({ type: 'authentication_error', message });
const LONG = `${'y'.repeat(1_985)}${SECRET}${'y'.repeat(2_000)}`;
const event = (error) => ({ text: 'x', knobs: { errorAfter: { events: 0, error } } });
const QUOTES = {
  'an event': event(quoting(`invalid key ${SECRET} for you`)),
  'the type of an event': event({ type: `error_${SECRET}`, message: 'no' }),
  'a body': { status: 401, error: quoting(`invalid key "Bearer ${SECRET}"`) },
  'the type of a body': { status: 403, error: { type: `error_${SECRET}`, message: 'no' } },
  'a body that is cut within it': { status: 401, error: quoting(LONG) },
  'an event that is cut within it': event(quoting(LONG)),
};

for (const protocol of Object.keys(PROTOCOLS)) {
  for (const [name, reply] of Object.entries(QUOTES)) {
    test(`${protocol}: a key that ${name} quotes is never shown`, async (t) => {
      const emulator = await startEmulator({ apiKey: SECRET, rules: [{ reply }] });
      t.after(() => emulator.close());
      const records = [];
      const agent = createAgent({
        envId: 'e',
        model: {
          ...{ id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: SECRET, protocol },
          ...{ maxRetries: 1, restart: 'never' },
        },
        logger: (record) => records.push(record),
        telemetry: (span) => records.push(span),
        onMetric: (metric) => records.push(metric),
      });
      const session = await agent.startSession({ userId: 'ann' });
      const error = await rejection(session.prompt('hi'));
      const elements = await collect(session.send('hi'));
      assert.equal(error.name, 'ModelError');
      assert.equal(errorOf(elements).code, error.code);
      const isLast = ({ message }) => message === 'run ended';
      await eventually(() => records.filter(isLast).length === 2, 'the last records');
      await agent.close();
      for (const value of [error, elements, records]) {
        const [, around] = /(.{0,30}hunter2.{0,20})/.exec(shown(value)) ?? [];
        assert.equal(around, undefined);
      }
    });
  }
}

/** An agent at a gateway that answers every request with the data of these events. */
async function rawFor(t, events, model) {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(events.map((data) => `data: ${JSON.stringify(data)}\n\n`).join(''));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const apiBaseUrl = `http://127.0.0.1:${server.address().port}`;
  const agent = createAgent({
    envId: 'e',
    model: { id: 'glm', apiBaseUrl, apiKey: 'k', maxRetries: 0, restart: 'never', ...model },
  });
  t.after(async () => {
    await agent.close();
    server.closeAllConnections();
    server.close();
  });
  const session = await agent.startSession({ userId: 'ann' });
  return { session, send: (input) => readStream(session.send(input)) };
}

for (const protocol of Object.keys(PROTOCOLS)) {
  test(`${protocol}: an error without a type or a name of its event is one`, async (t) => {
    const events = [{ error: { message: 'all is lost' } }];
    const { send } = await rawFor(t, events, { protocol });
    const error = errorOf(await send('hi'));
    assert.deepEqual([error.code, error.retryable], ['E_MODEL_SERVER', true]);
    assert.match(error.message, /all is lost/);
  });
}

test('openai: reasoning under two names is told once', async (t) => {
  const chunk = (delta, reason = null) => ({
    id: 'answer_1',
    choices: [{ index: 0, delta, finish_reason: reason }],
  });
  const twice = (words) => chunk({ reasoning_content: words, reasoning: words });
  const { send } = await rawFor(
    t,
    [twice('Let me '), twice('think.'), chunk({ content: 'So.' }), chunk({}, 'stop')],
    { protocol: 'openai' },
  );
  const elements = await send('hi');
  assert.equal(thoughtOf(elements), 'Let me think.');
  assert.equal(textOf(elements), 'So.');
});

for (const stopReason of ['pause_turn', 'max_tokens']) {
  both(`prompt: an answer that ${stopReason} cuts is whole`, async (t, protocol, agentFor) => {
    const part = (words) => ({ times: 1, reply: text(words, { stopReason }) });
    const { session, agent } = await agentFor({
      rules: [
        part('One, '),
        part('two, '),
        { times: 1, reply: 'three.' },
        part('a'),
        { reply: 'b' },
      ],
    });
    const { text: whole, ...rest } = await session.prompt('count');
    assert.equal(whole, 'One, two, three.');
    assert.deepEqual([rest.numTurns, rest.stopReason], [3, 'end_turn']);
    assert.equal((await agent.prompt('again')).text, 'ab');
  });
}

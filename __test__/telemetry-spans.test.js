import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, text, toolCall } from '../emulator/index.js';
import { SPANS, TURN, watched } from './support/format-spans.js';
import { idleOf, readStream, textOf } from './support/gateway-elements.js';
import { deferred, eventually } from './support/boundary.js';
import { SOON, tool } from './support/gateway.js';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const PARENT_ID = 'b7ad6b7169203331';
const TRACEPARENT = `00-${TRACE_ID}-${PARENT_ID}-01`;

test('telemetry: a turn holds its requests and tools', async (t) => {
  const before = Date.now();
  const { run, spans } = await watched(t, TURN);
  await run('go');
  assert.deepEqual(
    spans.map(({ name }) => name),
    SPANS,
  );
  const turn = spans.at(-1);
  assert.equal(turn.parentSpanId, null);
  for (const span of spans) {
    assert.match(span.traceId, /^[0-9a-f]{32}$/);
    assert.match(span.spanId, /^[0-9a-f]{16}$/);
    assert.equal(span.traceId, turn.traceId);
    if (span !== turn) assert.equal(span.parentSpanId, turn.spanId);
    assert.ok(before <= span.startTimeMs && span.startTimeMs <= span.endTimeMs);
    assert.ok(turn.startTimeMs <= span.startTimeMs && span.endTimeMs <= turn.endTimeMs);
  }
  assert.equal(new Set(spans.map(({ spanId }) => spanId)).size, spans.length);
  assert.deepEqual(
    spans.map(({ kind }) => kind),
    ['client', 'internal', 'internal', 'client', 'internal'],
  );
  assert.deepEqual(
    spans.map(({ error }) => error),
    [null, null, 'tool_error', null, null],
  );
});

test('telemetry: spans have the attributes of the GenAI conventions', async (t) => {
  const { run, spans, session } = await watched(t, TURN);
  await run('go');
  const [request, look, fail, , turn] = spans.map(({ attributes }) => attributes);
  const usage = (times) => ({
    'gen_ai.usage.input_tokens': 25 * times,
    'gen_ai.usage.output_tokens': 7 * times,
    'gen_ai.usage.cache_read.input_tokens': 5 * times,
    'gen_ai.usage.cache_creation.input_tokens': 0,
  });
  assert.deepEqual(request, {
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'glm',
    'gen_ai.request.max_tokens': 32_000,
    'gen_ai.response.id': 'msg_1',
    'gen_ai.response.model': 'glm',
    'gen_ai.response.finish_reasons': ['tool_use'],
    ...usage(1),
  });
  assert.deepEqual(look, {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': 'call_1',
    'gen_ai.tool.type': 'function',
  });
  assert.deepEqual([fail['gen_ai.tool.name'], fail['error.type']], ['fail', 'tool_error']);
  assert.deepEqual(turn, {
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': session.id,
    'gen_ai.request.model': 'glm',
    'gen_ai.agent.name': 'helper',
    'gen_ai.response.finish_reasons': ['end_turn'],
    ...usage(2),
  });
});

test('telemetry: spans and metrics hold no content', async (t) => {
  const secrets = ['prompt-words', 'output-words', 'answer-words', 'input-words'];
  const { run, spans, metrics } = await watched(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'answer-words' },
      { reply: toolCall('look', { path: 'input-words' }) },
    ],
    tools: [tool('look', () => 'output-words')],
  });
  await run('prompt-words');
  const told = JSON.stringify([spans, metrics]);
  for (const secret of [...secrets, 'emulator-key']) assert.ok(!told.includes(secret), secret);
  assert.ok(spans.length === 4 && metrics.length > 0);
});

test('telemetry: traceparent joins a trace, for one run', async (t) => {
  const { run, spans } = await watched(t, { rules: 'ok' });
  await run('one', { traceparent: TRACEPARENT });
  await run('two');
  const [request, turn, , other] = spans;
  assert.deepEqual([turn.traceId, turn.parentSpanId], [TRACE_ID, PARENT_ID]);
  assert.deepEqual([request.traceId, request.parentSpanId], [TRACE_ID, turn.spanId]);
  assert.notEqual(other.traceId, TRACE_ID);
  assert.equal(other.parentSpanId, null);
});

const MALFORMED = [
  '',
  'x',
  `00-${TRACE_ID}-${PARENT_ID}`,
  `00-${TRACE_ID}-${PARENT_ID}-1`,
  `00-${TRACE_ID}-${PARENT_ID}-01-more`,
  `ff-${TRACE_ID}-${PARENT_ID}-01`,
  `00-${TRACE_ID.toUpperCase()}-${PARENT_ID}-01`,
  `00-${'0'.repeat(32)}-${PARENT_ID}-01`,
  `00-${TRACE_ID}-${'0'.repeat(16)}-01`,
  `00-${TRACE_ID}x-${PARENT_ID}-01`,
  5,
  {},
];

test('telemetry: a malformed traceparent is refused by the first next()', async (t) => {
  const { session, send, emulator, spans } = await watched(t, { rules: 'ok' });
  for (const traceparent of MALFORMED) {
    await assert.rejects(session.send('hi', { traceparent }).next(), {
      name: 'InvalidConfigError',
      code: 'E_INVALID_CONFIG',
      message: /traceparent/,
    });
  }
  assert.equal(emulator.requests.length, 0);
  assert.deepEqual(spans, []);
  for (const traceparent of [undefined, null]) await send('hi', { traceparent });
});

test('telemetry: a failed run marks its spans and the duration of its request', async (t) => {
  const { run, spans, metrics } = await watched(t, { rules: httpError(401) });
  await run('hi');
  assert.deepEqual(
    spans.map(({ name, error, attributes }) => [name, error, attributes['error.type']]),
    [
      ['chat glm', 'E_MODEL_AUTH', 'E_MODEL_AUTH'],
      ['invoke_agent', 'E_MODEL_AUTH', 'E_MODEL_AUTH'],
    ],
  );
  assert.deepEqual(
    metrics.map(({ name, attributes }) => [name, attributes['error.type']]),
    [['gen_ai.client.operation.duration', 'E_MODEL_AUTH']],
  );
});

test('telemetry: what was interrupted is told as well, and is no failure', async (t) => {
  const running = deferred();
  const { session, spans } = await watched(t, {
    rules: toolCall('wait', {}),
    tools: [tool('wait', () => (running.resolve(), new Promise(() => {})))],
  });
  const reading = readStream(session.send('go'));
  await running.promise;
  await session.abort();
  assert.equal(idleOf(await reading).stopReason, 'aborted');
  await eventually(() => spans.length === 3, 'three spans');
  assert.deepEqual(
    spans.map(({ name, error }) => [name, error]),
    [
      ['chat glm', null],
      ['execute_tool wait', null],
      ['invoke_agent', null],
    ],
  );
});

test('telemetry: retries are within the span of their request', async (t) => {
  const { run, spans } = await watched(t, {
    rules: [{ times: 2, reply: httpError(529, {}, SOON) }, { reply: 'ok' }],
  });
  await run('hi');
  assert.deepEqual(
    spans.map(({ name, error }) => [name, error]),
    [
      ['chat glm', null],
      ['invoke_agent', null],
    ],
  );
});

test('telemetry: metrics have names, units and attributes', async (t) => {
  const { run, metrics } = await watched(t, TURN);
  await run('go');
  const model = { 'gen_ai.operation.name': 'chat', 'gen_ai.request.model': 'glm' };
  const tokens = (type, value) => [
    'gen_ai.client.token.usage',
    '{token}',
    { ...model, 'gen_ai.token.type': type },
    value,
  ];
  const request = [
    ['gen_ai.server.time_to_first_token', 's', model],
    tokens('input', 25),
    tokens('output', 7),
    ['gen_ai.client.operation.duration', 's', model],
  ];
  const toolRun = (name, error) => ['oak.tool.duration', 's', { 'gen_ai.tool.name': name, error }];
  const told = metrics.map(({ name, unit, attributes, value }) => {
    assert.ok(value >= 0 && value < 60);
    return [name, unit, attributes, ...(unit === 's' ? [] : [value])];
  });
  assert.deepEqual(told, [...request, toolRun('look', false), toolRun('fail', true), ...request]);
  for (const metric of metrics) {
    assert.deepEqual(Object.keys(metric).sort(), ['attributes', 'name', 'unit', 'value']);
  }
});

test('telemetry: either observer works alone, and an object with span() too', async (t) => {
  class Tracer {
    #spans = [];
    span(span) {
      this.#spans.push(span.name);
    }
    get names() {
      return this.#spans;
    }
  }
  const tracer = new Tracer();
  const traced = await watched(t, { ...TURN, telemetry: tracer, onMetric: undefined });
  await traced.send('go');
  await eventually(() => tracer.names.length === SPANS.length, 'the spans');
  assert.deepEqual(tracer.names, SPANS);
  assert.deepEqual([traced.spans, traced.metrics], [[], []]);

  const measured = await watched(t, { rules: text('ok'), telemetry: undefined });
  await measured.send('go');
  await eventually(() => measured.metrics.length === 4, 'the metrics');
  assert.deepEqual(measured.spans, []);
});

test('telemetry: nothing is told by an agent that was not asked to', async (t) => {
  const silent = { telemetry: undefined, onMetric: undefined };
  const { send, spans, metrics } = await watched(t, { rules: 'ok', ...silent });
  const other = await watched(t, { rules: 'ok' });
  assert.equal(textOf(await send('hi')), 'ok');
  await other.run('hi');
  assert.deepEqual([spans, metrics], [[], []]);
});

test('telemetry: all of a run was told when its agent is closed', async (t) => {
  const { agent, spans } = await watched(t, TURN);
  await agent.prompt('go');
  await agent.close();
  assert.deepEqual(
    spans.map(({ name }) => name),
    SPANS,
  );
});

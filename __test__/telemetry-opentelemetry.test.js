import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

import { oracle } from '../scripts/oracle.js';
import { SPANS, TURN, watched } from './support/format-spans.js';

const require = createRequire(join(oracle('opentelemetry'), 'package.json'));
const {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  isSpanContextValid,
  trace,
} = require('@opentelemetry/api');
const {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} = require('@opentelemetry/sdk-trace-base');

const KINDS = { client: SpanKind.CLIENT, internal: SpanKind.INTERNAL };

/** Gives out the ids that are next: those of the record that becomes a span. */
class Ids {
  next;
  generateTraceId = () => this.next.traceId;
  generateSpanId = () => this.next.spanId;
}

/** The bridge that a program would write: a record becomes a span of the SDK. */
class Bridge {
  #ids = new Ids();
  #exporter = new InMemorySpanExporter();
  #tracer;

  constructor() {
    const provider = new BasicTracerProvider({
      idGenerator: this.#ids,
      spanProcessors: [new SimpleSpanProcessor(this.#exporter)],
    });
    this.#tracer = provider.getTracer('oak');
  }

  span(record) {
    this.#ids.next = record;
    const options = {
      kind: KINDS[record.kind],
      startTime: record.startTimeMs,
      attributes: record.attributes,
    };
    const span = this.#tracer.startSpan(record.name, options, parentOf(record));
    if (record.error) span.setStatus({ code: SpanStatusCode.ERROR, message: record.error });
    span.end(record.endTimeMs);
  }

  get finished() {
    return this.#exporter.getFinishedSpans();
  }
}

function parentOf({ traceId, parentSpanId }) {
  if (!parentSpanId) return ROOT_CONTEXT;
  const parent = { traceId, spanId: parentSpanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
  assert.ok(isSpanContextValid(parent));
  return trace.setSpan(ROOT_CONTEXT, trace.wrapSpanContext(parent));
}

/** Runs a turn whose records go to a bridge too; gives the exported spans. */
async function exported(t, options) {
  const bridge = new Bridge();
  const records = [];
  const { run, spans } = await watched(t, {
    ...TURN,
    telemetry: (record) => {
      bridge.span(record);
      records.push(record);
      spans.push(record);
    },
  });
  await run('go', options);
  return { records, spans: bridge.finished };
}

const millis = ([seconds, nanos]) => seconds * 1_000 + nanos / 1e6;

test('telemetry: the SDK of OpenTelemetry takes every span as it is', async (t) => {
  const { records, spans } = await exported(t);
  assert.deepEqual(
    spans.map(({ name }) => name),
    SPANS,
  );
  spans.forEach((span, at) => {
    const record = records[at];
    const { traceId, spanId } = span.spanContext();
    assert.ok(isSpanContextValid(span.spanContext()));
    assert.deepEqual([traceId, spanId], [record.traceId, record.spanId]);
    assert.equal(span.parentSpanContext?.spanId ?? null, record.parentSpanId);
    // Attributes that the SDK does not accept are dropped by it.
    assert.deepEqual(span.attributes, record.attributes);
    assert.equal(span.droppedAttributesCount, 0);
    assert.equal(millis(span.startTime), record.startTimeMs);
    assert.equal(millis(span.endTime), record.endTimeMs);
    assert.equal(span.kind, KINDS[record.kind]);
  });
});

test('telemetry: exported spans form one tree, and failures have a status', async (t) => {
  const { spans } = await exported(t);
  const turn = spans.at(-1);
  assert.equal(turn.parentSpanContext, undefined);
  for (const span of spans.slice(0, -1)) {
    assert.equal(span.parentSpanContext.spanId, turn.spanContext().spanId);
    assert.equal(span.spanContext().traceId, turn.spanContext().traceId);
  }
  assert.deepEqual(
    spans.map(({ status }) => status),
    [
      { code: SpanStatusCode.UNSET },
      { code: SpanStatusCode.UNSET },
      { code: SpanStatusCode.ERROR, message: 'tool_error' },
      { code: SpanStatusCode.UNSET },
      { code: SpanStatusCode.UNSET },
    ],
  );
});

test('telemetry: a run joins the trace of a span of the program', async (t) => {
  const ids = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
  const { spans } = await exported(t, { traceparent: `00-${ids.traceId}-${ids.spanId}-01` });
  const turn = spans.at(-1);
  assert.equal(turn.spanContext().traceId, ids.traceId);
  assert.equal(turn.parentSpanContext.spanId, ids.spanId);
  assert.ok(spans.every((span) => span.spanContext().traceId === ids.traceId));
});

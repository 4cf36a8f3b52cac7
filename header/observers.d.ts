/** What the kernel tells of its own work: fixed texts, ids, counts, durations and codes. */
export interface LogRecord {
  level: 'debug' | 'info' | 'warn' | 'error';
  /** Part of the kernel that speaks, such as `model`. */
  tag: string;
  message: string;
  fields: Record<string, unknown>;
}

/** Receives log records: a function, or an object with one method a level. */
export type Logger =
  ((record: LogRecord) => void) | { [L in LogRecord['level']]?: (record: LogRecord) => void };

/** One measured value, under the names of the OpenTelemetry GenAI conventions where there is one. */
export interface Metric {
  name: string;
  value: number;
  /** As UCUM writes it: `s`, `{token}`. */
  unit: string;
  attributes: Record<string, unknown>;
}

/** A finished span: a turn, a model request or a tool call. */
export interface SpanRecord {
  /** 32 hex digits. */
  traceId: string;
  /** 16 hex digits. */
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: 'internal' | 'client';
  /** Milliseconds since the epoch. */
  startTimeMs: number;
  /** Milliseconds since the epoch. */
  endTimeMs: number;
  /** Names are those of the OpenTelemetry GenAI conventions where there is one. */
  attributes: Record<string, unknown>;
  /** Why it failed: an error code, or `tool_error`. */
  error: string | null;
}

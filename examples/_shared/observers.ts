/**
 * Observers of an agent that print what they are told: log records, metrics and spans.
 *
 * None of these carries content: texts are fixed, fields are ids, names, counts, durations and codes.
 */

import type { LogRecord, Metric, SpanRecord } from '@cloudbase/open-agent-kernel';

/** Fields for `createAgent`; `print` takes a word for the kind, and a line. */
export function printingObservers(print: (kind: string, line: string) => void) {
  return {
    logger({ level, tag, message, fields }: LogRecord) {
      print('log', `${level} [${tag}] ${message} ${JSON.stringify(fields)}`);
    },
    onMetric({ name, value, unit }: Metric) {
      print('metric', `${name} ${Number(value.toFixed(4))} ${unit}`);
    },
    telemetry({ name, startTimeMs, endTimeMs, error }: SpanRecord) {
      print('span', `${name} ${endTimeMs - startTimeMs} ms${error ? ` failed: ${error}` : ''}`);
    },
  };
}

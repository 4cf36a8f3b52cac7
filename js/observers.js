/**
 * Prepares `config.logger`, `config.onMetric` and `config.telemetry` for the core.
 *
 * @module
 */
import { read } from './plain.js';

const LEVELS = ['debug', 'info', 'warn', 'error'];

/**
 * @param {unknown} logger a function, or an object with one method a level
 * @returns {unknown} a function that takes a record; anything of a wrong shape is left for the core
 *   to refuse
 */
export function prepareLogger(logger) {
  if (typeof logger !== 'object' || logger === null) return logger;
  const known = LEVELS.filter(
    (level) => typeof read(logger, level, 'config.logger') === 'function',
  );
  if (known.length === 0) return logger;
  // The promise of an async method is given back, so that its rejection is caught.
  return (record) => (known.includes(record.level) ? logger[record.level](record) : undefined);
}

/**
 * @param {unknown} telemetry a function, or an object with the method `span`
 * @returns {unknown} a function that takes a span
 */
export function prepareTelemetry(telemetry) {
  if (typeof telemetry !== 'object' || telemetry === null) return telemetry;
  const method = read(telemetry, 'span', 'config.telemetry');
  return typeof method === 'function' ? (span) => method.call(telemetry, span) : telemetry;
}

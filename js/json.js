/**
 * JSON text for the core.
 *
 * @module
 */

/** An escape of half a surrogate pair, as `JSON.stringify` writes it. */
const HALF_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * Writes a value as `JSON.stringify` does, `undefined` as `null`. Halves of surrogate pairs become
 * U+FFFD: the core and the gateway know only whole characters.
 *
 * @param {unknown} value
 * @returns {string}
 */
export function toJson(value) {
  const text = JSON.stringify(value) ?? 'null';
  return HALF_ESCAPE.test(text) ? JSON.stringify(wellFormed(JSON.parse(text))) : text;
}

function wellFormed(value) {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (value === null || typeof value !== 'object') return value;
  const pairs = Object.entries(value).map(([key, item]) => [key.toWellFormed(), wellFormed(item)]);
  return Object.fromEntries(pairs);
}

/**
 * A text answer.
 *
 * @param {string | string[]} value text, or the exact deltas
 * @param {object} [more] further reply fields
 * @returns {object}
 */
export function text(value, more = {}) {
  return { text: value, ...more };
}

/**
 * An answer that thinks and then speaks.
 *
 * @param {string} thought
 * @param {string | string[]} value
 * @param {object} [more] further reply fields
 * @returns {object}
 */
export function thinking(thought, value, more = {}) {
  return { thinking: thought, text: value, ...more };
}

/**
 * An answer with one tool call.
 *
 * @param {string} name
 * @param {object} [input]
 * @param {object} [more] further reply fields (`text`, `thinking`, …) and, for the call, `id`, `raw`
 *   and `fragments`
 * @returns {object}
 */
export function toolCall(name, input, { id, raw, fragments, ...more } = {}) {
  return { ...more, toolCalls: [defined({ id, name, input, raw, fragments })] };
}

/**
 * An answer with several tool calls.
 *
 * @param {{ id?: string, name: string, input?: object, raw?: string, fragments?: number | string[] }[]} calls
 * @param {object} [more] further reply fields, e.g. `{ interleave: true }`
 * @returns {object}
 */
export function toolCalls(calls, more = {}) {
  return { ...more, toolCalls: calls };
}

/**
 * An HTTP failure.
 *
 * @param {number} status
 * @param {{ type?: string, message?: string }} [error] default: the usual type of this status
 * @param {Record<string, string>} [headers] e.g. `{ 'retry-after': '1' }`
 * @returns {object}
 */
export function httpError(status, error = {}, headers = {}) {
  return { status, error, headers };
}

function defined(value) {
  return Object.fromEntries(Object.entries(value).filter(([, item]) => item !== undefined));
}

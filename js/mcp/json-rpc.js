/**
 * Frames of JSON-RPC 2.0.
 *
 * @module
 */

/** Codes of errors. */
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** The other side is gone or will not do more at once. */
export const UNAVAILABLE = -32000;

export function isObject(value) {
  return typeof value === 'object' && value !== null;
}

/**
 * The answer to a request that failed.
 *
 * @param {string | number} id of the request
 * @param {number} code
 * @param {string} message
 */
export function errorFrame(id, code, message) {
  return { jsonrpc: '2.0', id, error: { code, message } };
}

/**
 * Calls what may throw or reject, at once. Never throws itself.
 *
 * @param {() => unknown} work
 * @param {(error: unknown) => void} [onFailure]
 */
export function attempt(work, onFailure = () => {}) {
  new Promise((resolve) => resolve(work())).catch(onFailure);
}

/**
 * Frames of JSON-RPC 2.0.
 *
 * @module
 */
import { describeThrown } from '../thrown.js';

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
 * The answer that a server gave, under the id that the client knows; a failure when it gave none.
 *
 * @param {string | number} id
 * @param {{ result?: unknown, error?: unknown }} answer
 */
export function answerFrame(id, { result, error }) {
  if (isObject(error)) return { jsonrpc: '2.0', id, error };
  if (isObject(result)) return { jsonrpc: '2.0', id, result };
  return errorFrame(id, INTERNAL_ERROR, 'The server gave no result.');
}

/**
 * Tells that nobody waits for the answer to a request any more.
 *
 * @param {string | number} requestId
 * @param {string} reason
 */
export function cancelFrame(requestId, reason) {
  return { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId, reason } };
}

/** What was thrown, in words. */
export function failureText(error) {
  return describeThrown(error).message || 'Internal error';
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

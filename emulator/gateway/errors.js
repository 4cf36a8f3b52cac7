const TYPES = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/**
 * The usual error type of an HTTP status.
 *
 * @param {number} status
 * @returns {string}
 */
export function errorTypeOf(status) {
  return TYPES[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
}

/**
 * Body of an error of the Messages API.
 *
 * @param {{ type: string, message: string, code?: string }} error
 * @param {string} requestId
 * @returns {object}
 */
export function messagesError({ type, message }, requestId) {
  return { type: 'error', error: { type, message }, request_id: requestId };
}

/**
 * Body of an error of the chat completions API.
 *
 * @type {typeof messagesError}
 */
export function chatError({ type, message, code = null }) {
  return { error: { message, type, code } };
}

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

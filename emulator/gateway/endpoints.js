import { chatEndpoint } from './chat.js';
import { messagesEndpoint } from './messages.js';

const ENDPOINTS = [messagesEndpoint, chatEndpoint];

/**
 * The endpoint at a path.
 *
 * @param {string} path below the gateway's base URL
 * @returns {import('./messages.js').Endpoint | undefined}
 */
export function endpointAt(path) {
  return ENDPOINTS.find((endpoint) => endpoint.path === path);
}

/**
 * The endpoint whose errors are sent: with the knob `foreignErrors`, the other one's.
 *
 * @param {import('./messages.js').Endpoint} endpoint
 * @param {object} knobs
 * @returns {import('./messages.js').Endpoint}
 */
export function errorsOf(endpoint, { foreignErrors }) {
  return foreignErrors ? ENDPOINTS.find((other) => other !== endpoint) : endpoint;
}

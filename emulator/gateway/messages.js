import { planEvents } from '../model/events.js';
import { planMessage } from '../model/plan.js';
import { messagesWire } from '../stream/messages-wire.js';
import { validateRequest } from '../validator/validate-request.js';
import { messagesError } from './errors.js';

/**
 * @typedef {object} Endpoint what the gateway must know of a protocol
 * @property {string} path below the gateway's base URL
 * @property {typeof validateRequest} validate
 * @property {(body: any) => object} toRequest a valid body in the form that rules look at
 * @property {import('../model/plan.js').Dialect} dialect
 * @property {boolean} signsThinking whether thinking goes out signed and must come back unchanged
 * @property {(plan: import('../model/plan.js').Plan, body: any) => Iterable<object | string>} events
 * @property {(plan: import('../model/plan.js').Plan) => object} message the answer as one object
 * @property {(knobs: object) => import('../stream/messages-wire.js').Wire} wire
 * @property {typeof messagesError} errorForm
 */

/**
 * The Anthropic Messages API.
 *
 * @type {Endpoint}
 */
export const messagesEndpoint = {
  path: '/v1/messages',
  validate: validateRequest,
  toRequest: (body) => body,
  // Real gateways stream nothing but an empty fragment for a call without arguments.
  dialect: { messagePrefix: 'msg', callPrefix: 'toolu', noInput: '' },
  signsThinking: true,
  events: planEvents,
  message: planMessage,
  wire: messagesWire,
  errorForm: messagesError,
};

/**
 * One suite for both wire protocols.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toMessagesRequest } from '../../emulator/chat/to-messages.js';
import { gatewayFor } from './gateway.js';

/** What differs between the protocols. */
export const PROTOCOLS = {
  anthropic: {
    path: '/v1/messages',
    /** Events of an answer until so many deltas of its first block are out. */
    after: (deltas) => 2 + deltas,
    toMessages: (body) => body,
  },
  openai: {
    path: '/chat/completions',
    after: (deltas) => 1 + deltas,
    toMessages: toMessagesRequest,
  },
};

/**
 * Runs a test once for each protocol.
 *
 * @param {string} name
 * @param {(t: object, protocol: object, agentFor: Function) => Promise<void>} work `agentFor` is
 *   `gatewayFor` with the protocol; its `messages` gives requests in the form of the Messages API
 */
export function both(name, work) {
  for (const [protocol, facts] of Object.entries(PROTOCOLS)) {
    test(`${protocol}: ${name}`, (t) =>
      work(t, { name: protocol, ...facts }, (options) => agentFor(t, protocol, options)));
  }
}

async function agentFor(t, protocol, { model, ...options }) {
  const { path, toMessages } = PROTOCOLS[protocol];
  const gateway = await gatewayFor(t, { ...options, model: { protocol, ...model } });
  const { emulator } = gateway;
  t.after(() => {
    for (const request of emulator.requests) assert.ok(request.path.endsWith(path), request.path);
  });
  return { ...gateway, messages: (at) => plainMessages(toMessages(emulator.requests.at(at).body)) };
}

/** Messages whose content is always a list. */
function plainMessages({ messages }) {
  return messages.map(({ role, content }) => ({
    role,
    content: typeof content === 'string' ? [{ type: 'text', text: content }] : content,
  }));
}

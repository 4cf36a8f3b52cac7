/**
 * Agents with a custom stream adapter.
 *
 * @module
 */
import { collect } from './boundary.js';
import { gatewayFor } from './gateway.js';

/** An adapter that passes messages on as they are, and notes what it was told about runs. */
export class Mirror {
  contexts = [];
  messages = [];

  async *adapt(messages, context) {
    this.contexts.push(context);
    for await (const message of messages) {
      this.messages.push(message);
      yield message;
    }
  }
}

/**
 * An agent whose streams go through an adapter.
 *
 * @param {import('node:test').TestContext} t
 * @param {object | Function} adapter the adapter, or its `adapt`
 * @param {object} options see `gatewayFor`
 */
export async function adapterFor(t, adapter, options) {
  const streamAdapter = typeof adapter === 'function' ? { adapt: adapter } : adapter;
  const gateway = await gatewayFor(t, { streamAdapter, ...options });
  return {
    ...gateway,
    /** Sends and reads everything. */
    read: (input, more) => collect(gateway.session.send(input, more)),
  };
}

/** Messages of a type. */
export function ofType(messages, type) {
  return messages.filter((message) => message.type === type);
}

/**
 * The kernel, through its public interface.
 *
 * @module
 */
import { createAgent } from '../dist/index.js';
import { native } from '../js/native.js';
import { MODEL } from './floor.js';

/**
 * @param {{ gatewayUrl: string, apiKey: string }} gateway
 * @returns {Promise<import('./tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey }) {
  const agent = createAgent({
    envId: 'bench-env',
    model: { ...MODEL, apiBaseUrl: gatewayUrl, apiKey },
  });
  return {
    conversation: async () => new Conversation(await agent.startSession({ userId: 'bench' })),
  };
}

class Conversation {
  #session;

  constructor(session) {
    this.#session = session;
  }

  async send(prompt, { onText, onError, signal }) {
    for await (const element of this.#session.send(prompt, { signal })) {
      if (element.sessionUpdate === 'agent_message_chunk') onText(element.content.text);
      else if (element.level === 'error') onError(element);
    }
  }
}

let crossings = 0;
const { nextBatch } = native.NativeRun.prototype;
native.NativeRun.prototype.nextBatch = function counted() {
  crossings += 1;
  return nextBatch.call(this);
};

/** @returns {number} batches that the core was asked for so far */
export function countCrossings() {
  return crossings;
}

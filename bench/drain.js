/**
 * Reads answers and throws them away: the time that the server needs at least.
 *
 * @module
 */
import { once } from 'node:events';
import { request } from 'node:http';

import { body, headersFor } from './floor.js';

/**
 * @param {{ gatewayUrl: string, apiKey: string }} gateway
 * @returns {Promise<import('./tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey }) {
  const headers = headersFor(apiKey);
  return {
    conversation: async () => ({
      async send(prompt) {
        const asking = request(`${gatewayUrl}/v1/messages`, { method: 'POST', headers });
        asking.end(body(prompt));
        const [response] = await once(asking, 'response');
        await once(response.resume(), 'end');
      },
    }),
  };
}

/**
 * `@anthropic-ai/sdk`: a client of the Messages API, without a loop or sessions.
 *
 * @module
 */
import { MODEL } from '../floor.js';

/**
 * @param {{ gatewayUrl: string, apiKey: string, peer: import('./prepare.js').Prepared }} gateway
 * @returns {Promise<import('../tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey, peer }) {
  const { Anthropic } = await import(peer.modules['@anthropic-ai/sdk']);
  const client = new Anthropic({ baseURL: gatewayUrl, authToken: apiKey, apiKey: null });
  return {
    conversation: async () => ({
      async send(prompt, { onText }) {
        const stream = client.messages.stream({
          model: MODEL.id,
          max_tokens: MODEL.maxTokens,
          messages: [{ role: 'user', content: prompt }],
        });
        await stream.on('text', onText).done();
      },
    }),
  };
}

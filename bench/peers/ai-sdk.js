/**
 * `ai` with `@ai-sdk/anthropic`: a toolkit for models, with a loop, without sessions.
 *
 * @module
 */
import { MODEL } from '../floor.js';

/**
 * @param {{ gatewayUrl: string, apiKey: string, peer: import('./prepare.js').Prepared }} gateway
 * @returns {Promise<import('../tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey, peer }) {
  const { streamText } = await import(peer.modules.ai);
  const { createAnthropic } = await import(peer.modules['@ai-sdk/anthropic']);
  const model = createAnthropic({ baseURL: `${gatewayUrl}/v1`, authToken: apiKey })(MODEL.id);
  return {
    conversation: async () => ({
      async send(prompt, { onText }) {
        let failure;
        const { textStream } = streamText({
          model,
          prompt,
          maxOutputTokens: MODEL.maxTokens,
          // The stream itself just ends.
          onError: ({ error }) => (failure = error),
        });
        for await (const text of textStream) onText(text);
        if (failure) throw failure;
      },
    }),
  };
}

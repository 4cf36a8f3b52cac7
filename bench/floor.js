/**
 * The floor: what a program needs at least. Node's `fetch`, an SSE split by hand, `JSON.parse`, the
 * text of the deltas. No retries, no limits, no sessions, no checks.
 *
 * @module
 */

/** The settings of the model, the same for every contender. */
export const MODEL = { id: 'bench-model', maxTokens: 4_096 };

/**
 * @param {{ gatewayUrl: string, apiKey: string }} gateway
 * @returns {Promise<import('./tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey }) {
  const url = `${gatewayUrl}/v1/messages`;
  const headers = headersFor(apiKey);
  return {
    conversation: async () => ({
      async send(prompt, { onText, onError, signal }) {
        const response = await fetch(url, { method: 'POST', headers, body: body(prompt), signal });
        if (response.ok) await readText(response, onText);
        else onError(await response.json());
      },
    }),
  };
}

/** @returns {Record<string, string>} the headers of a request */
export function headersFor(apiKey) {
  return {
    authorization: `Bearer ${apiKey}`,
    'content-type': 'application/json',
    accept: 'text/event-stream',
    'anthropic-version': '2023-06-01',
  };
}

/** @returns {string} the body of a request, the same bytes that the kernel sends */
export function body(prompt) {
  const cache_control = { type: 'ephemeral' };
  const content = [{ type: 'text', text: prompt, cache_control }];
  return JSON.stringify({
    model: MODEL.id,
    max_tokens: MODEL.maxTokens,
    messages: [{ role: 'user', content }],
    stream: true,
  });
}

async function readText(response, onText) {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body) {
    const events = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const { type, delta } = JSON.parse(event.slice(event.indexOf('data: ') + 6));
      if (type === 'content_block_delta') onText(delta.text);
    }
  }
}

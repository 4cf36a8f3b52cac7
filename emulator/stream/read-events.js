/** What closes the stream of the chat endpoint; it is no JSON. */
const CLOSING = '[DONE]';

/**
 * Reads the SSE events of a response of the emulator; meant for tests and examples. Decodes `data:`
 * and ignores comments, the `event:` line and the closing `[DONE]`.
 *
 * @param {Response} response of `fetch`
 * @returns {AsyncGenerator<object>}
 */
export async function* readEvents(response) {
  const decoder = new TextDecoder();
  let buffer = '';
  for await (const bytes of response.body) {
    buffer += decoder.decode(bytes, { stream: true });
    const frames = buffer.split(/\r?\n\r?\n/);
    buffer = frames.pop();
    for (const frame of frames) {
      const data = frame
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n');
      if (data !== '' && data !== CLOSING) yield JSON.parse(data);
    }
  }
}

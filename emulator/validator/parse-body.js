/**
 * Decodes a request body.
 *
 * @param {Uint8Array} bytes
 * @returns {{ body?: unknown, violation?: { rule: string, message: string } }}
 */
export function parseBody(bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return { violation: { rule: 'body-utf8', message: 'the body is not valid UTF-8' } };
  }
  try {
    return { body: JSON.parse(text) };
  } catch (error) {
    return { violation: { rule: 'body-json', message: `the body is not JSON: ${error.message}` } };
  }
}

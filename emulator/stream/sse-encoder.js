/**
 * Makes the function that turns an event into its SSE text, following the format knobs.
 *
 * @param {object} knobs
 * @returns {(event: object) => string}
 */
export function sseEncoder({ crlf, noEventLine }) {
  const eol = crlf ? '\r\n' : '\n';
  return (event) => frame(event.type, JSON.stringify(event), eol, noEventLine);
}

/**
 * An event whose data is broken JSON.
 *
 * @param {object} knobs
 * @returns {string}
 */
export function brokenFrame({ crlf, noEventLine }) {
  const data = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"bro';
  return frame('content_block_delta', data, crlf ? '\r\n' : '\n', noEventLine);
}

/**
 * A comment line, which a reader must skip.
 *
 * @param {object} knobs
 * @returns {string}
 */
export function commentFrame({ crlf }) {
  return crlf ? ': keep-alive\r\n\r\n' : ': keep-alive\n\n';
}

function frame(type, data, eol, noEventLine) {
  return noEventLine
    ? `data: ${data}${eol}${eol}`
    : `event: ${type}${eol}data: ${data}${eol}${eol}`;
}

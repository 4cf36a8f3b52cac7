/**
 * Makes the functions that write SSE text, following the format knobs.
 *
 * @param {object} knobs
 * @returns {{ frame: (data: string, type?: string) => string, comment: (text: string) => string }}
 */
export function sseText({ crlf, noEventLine }) {
  const eol = crlf ? '\r\n' : '\n';
  return {
    frame: (data, type) =>
      type === undefined || noEventLine
        ? `data: ${data}${eol}${eol}`
        : `event: ${type}${eol}data: ${data}${eol}${eol}`,
    // A line that a reader must skip.
    comment: (text) => `: ${text}${eol}${eol}`,
  };
}

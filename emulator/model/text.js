/**
 * Cuts a string into pieces of at most `size` UTF-16 units without splitting a surrogate pair. A
 * piece is one unit longer when a pair would not fit otherwise (`size` 1).
 *
 * @param {string} value
 * @param {number} size
 * @returns {string[]} no pieces for the empty string
 */
export function chunkText(value, size) {
  const step = Math.max(1, Math.floor(size));
  const pieces = [];
  for (let start = 0; start < value.length;) {
    let end = Math.min(value.length, start + step);
    if (cutsPair(value, end)) end = end - 1 > start ? end - 1 : end + 1;
    pieces.push(value.slice(start, end));
    start = end;
  }
  return pieces;
}

/**
 * Cuts a string into exactly `count` pieces of about the same size (some may be empty).
 *
 * @param {string} value
 * @param {number} count
 * @returns {string[]}
 */
export function splitText(value, count) {
  const pieces = [];
  let start = 0;
  for (let index = 1; index <= count; index += 1) {
    let end = Math.round((value.length * index) / count);
    if (cutsPair(value, end)) end += 1;
    pieces.push(value.slice(start, end));
    start = end;
  }
  return pieces;
}

function cutsPair(value, end) {
  if (end <= 0 || end >= value.length) return false;
  const before = value.charCodeAt(end - 1);
  const after = value.charCodeAt(end);
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff;
}

/**
 * Takes apart what the core writes as one: pieces of a text in a row.
 *
 * @module
 */

/**
 * @param {unknown[]} batch elements, and arrays `[sessionUpdate, messageId, text, …]`
 * @returns {object[]} elements
 */
export function expandChunks(batch) {
  const elements = [];
  for (const item of batch) {
    if (!Array.isArray(item)) {
      elements.push(item);
      continue;
    }
    const [sessionUpdate, messageId] = item;
    for (let at = 2; at < item.length; at += 1) {
      elements.push({ sessionUpdate, content: { type: 'text', text: item[at] }, messageId });
    }
  }
  return elements;
}

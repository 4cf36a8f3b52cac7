/**
 * Looks at stored entries, without the code that wrote them.
 *
 * @module
 */

/** Content blocks of an entry; a text is one block. */
export function blocksOf(entry) {
  const content = entry.message?.content ?? [];
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

/** Blocks of a type in a list of entries or messages, oldest first. */
export function blocksIn(entries, type) {
  return entries.flatMap(blocksOf).filter((block) => block.type === type);
}

/** Whether somebody said exactly this. */
export function says(entries, role, text) {
  return entries.some(
    (entry) => entry.message?.role === role && blocksOf(entry).some((block) => block.text === text),
  );
}

/** The text of a result. */
export function resultText({ content }) {
  if (typeof content === 'string') return content;
  return (content ?? []).map(({ text }) => text).join('\n');
}

/** Values that occur more than once, each once. */
export function repeatedIn(values) {
  const seen = new Set();
  const repeated = new Set();
  for (const value of values) (seen.has(value) ? repeated : seen).add(value);
  return [...repeated];
}

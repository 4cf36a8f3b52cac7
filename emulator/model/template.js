/**
 * Replaces `{{user}}`, `{{toolResult}}`, `{{tool}}`, `{{model}}` and `{{turn}}` in every string of a
 * JSON value. One pass: text that comes from the conversation is never expanded again. Unknown
 * names stay as they are.
 *
 * @template T
 * @param {T} value
 * @param {Record<string, unknown>} facts
 * @returns {T}
 */
export function fillTemplate(value, facts) {
  if (typeof value === 'string') {
    if (!value.includes('{{')) return value;
    return value.replace(/\{\{(user|toolResult|tool|model|turn)\}\}/g, (_, name) =>
      String(facts[name] ?? ''),
    );
  }
  if (Array.isArray(value)) return value.map((item) => fillTemplate(item, facts));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [key, fillTemplate(item, facts)]),
    );
  }
  return value;
}

/**
 * What is known of a transcript entry without knowing its type.
 *
 * @module
 */

/** @returns {string | undefined} identity of an entry; bookkeeping entries have none */
export function uuidOf(entry) {
  return text(entry.uuid);
}

/** @returns {string | undefined} the message that an entry belongs to */
export function messageIdOf(entry) {
  return text(entry.message?.id) ?? uuidOf(entry);
}

/**
 * The row that an entry gets in the index of messages.
 *
 * @returns {{ messageId: string, role: 'user' | 'assistant', createdAt: number } | undefined} nothing
 *   for entries that are no message of the conversation
 */
export function messageRow(entry) {
  const role = entry.type;
  const messageId = messageIdOf(entry);
  const isMessage = role === 'user' || role === 'assistant';
  if (!isMessage || messageId === undefined || entry.isSidechain === true) return undefined;
  return { messageId, role, createdAt: createdAt(entry) };
}

function createdAt({ timestamp, createdAt: created }) {
  const parsed = typeof timestamp === 'string' ? Date.parse(timestamp) : NaN;
  const found = [parsed, timestamp, created].find((time) => Number.isFinite(time));
  return found ?? Date.now();
}

function text(value) {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

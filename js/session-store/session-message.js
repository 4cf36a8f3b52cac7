/**
 * Messages of a transcript in the short form that lists show.
 *
 * @module
 */
const ROLES = ['user', 'assistant', 'system'];

/**
 * Reads a raw transcript object.
 *
 * @param {unknown} raw
 * @returns {{ role: 'user' | 'assistant' | 'system', uuid?: string, sessionId?: string,
 *   content?: string, parentToolUseId?: string } | null} null when it is no message
 */
export function toSessionMessage(raw) {
  if (typeof raw !== 'object' || raw === null) return null;
  const role = [raw.type, raw.role].find((name) => typeof name === 'string');
  if (!ROLES.includes(role)) return null;
  const fields = {
    uuid: firstText(raw.uuid),
    sessionId: firstText(raw.session_id, raw.sessionId),
    content: content(raw),
    parentToolUseId: firstText(raw.parent_tool_use_id, raw.parentToolUseId),
  };
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  return { role, ...Object.fromEntries(known) };
}

function firstText(...values) {
  return values.find((value) => typeof value === 'string');
}

function content({ message, content: own }) {
  if (message === undefined || message === null) return firstText(own);
  return typeof message === 'string' ? message : JSON.stringify(message);
}

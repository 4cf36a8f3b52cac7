/**
 * Transcript entries as a list of messages, and back.
 *
 * A message has the form of the Messages API. What its entry holds beside it sits under one member,
 * `oak`, so that nothing is lost on the way back; messages of others need not have it. When a message
 * was made of several entries, or entries that are no messages stand beside it, `oak.transcript` says
 * so.
 *
 * @module
 */
import { createHash } from 'node:crypto';

/**
 * @param {object[]} entries
 * @returns {object[]} messages
 */
export function toMessages(entries) {
  const groups = [];
  const leading = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    if (!isMessage(entry)) (last ? last.after : leading).push(entry);
    else if (last && belongsTo(last, entry)) last.entries.push(entry);
    else groups.push({ entries: [entry], before: [], after: [] });
  }
  if (groups.length > 0) groups[0].before = leading;
  return groups.map(message);
}

function isMessage({ type, message: inner, isMeta, isApiErrorMessage }) {
  const isObject = typeof inner === 'object' && inner !== null;
  const isShown = isMeta !== true && isApiErrorMessage !== true;
  return isObject && isShown && (type === 'user' || type === 'assistant');
}

/** The entries of one answer hold one block each. */
function belongsTo({ entries: [first], after }, entry) {
  const { message: a } = first;
  const { message: b } = entry;
  const isAnswer = first.type === 'assistant' && entry.type === 'assistant';
  const areParts = Array.isArray(a.content) && Array.isArray(b.content) && a.id !== undefined;
  return isAnswer && areParts && after.length === 0 && frame(a) === frame(b);
}

/** All of a message but its content. */
function frame({ content: _, ...rest }) {
  return JSON.stringify(rest);
}

function message({ entries, before, after }) {
  const [{ message: inner, ...envelope }, ...others] = entries;
  const oak = { ...envelope };
  if (others.length + before.length + after.length > 0) {
    oak.transcript = { parts: others.map(part), before, after };
  }
  const blocks = others.flatMap((entry) => entry.message.content);
  const content = others.length > 0 ? [...inner.content, ...blocks] : inner.content;
  const { uuid } = envelope;
  return { ...inner, content, ...(uuid !== undefined && { uuid }), oak };
}

function part({ message: { content }, ...entry }) {
  return { blocks: content.length, entry };
}

/**
 * @param {object[]} messages
 * @param {string} sessionId
 * @returns {object[]} entries
 */
export function toEntries(messages, sessionId) {
  const entries = [];
  for (const [at, raw] of messages.entries()) {
    const isObject = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
    if (!isObject) throw new TypeError(`messages[${at}] is no object`);
    const parent = entries.findLast((entry) => entry.uuid !== undefined)?.uuid ?? null;
    entries.push(...(own(raw) ?? [foreign(raw, { at, parent, sessionId })]));
  }
  return entries;
}

/** The entries that a message was made of; nothing when it was made by others. */
function own({ oak, uuid, ...inner }) {
  if (typeof oak !== 'object' || oak === null || typeof oak.type !== 'string') return undefined;
  const { transcript, ...envelope } = oak;
  // A message may have a uuid without an entry that has one.
  const whole = uuid === envelope.uuid ? inner : { uuid, ...inner };
  const { parts = [], before = [], after = [] } = transcript ?? {};
  return [...before, ...split(envelope, whole, parts), ...after];
}

/** When the content was changed, and the parts are not known any more, one entry has all of it. */
function split(envelope, inner, parts) {
  const { content } = inner;
  const rest = parts.reduce((sum, { blocks }) => sum + blocks, 0);
  if (parts.length === 0 || !Array.isArray(content) || !(content.length >= rest)) {
    return [{ ...envelope, message: inner }];
  }
  let from = content.length - rest;
  const first = { ...envelope, message: { ...inner, content: content.slice(0, from) } };
  const others = parts.map(({ blocks, entry }) => {
    const own = content.slice(from, from + blocks);
    from += blocks;
    return { ...entry, message: { ...inner, content: own } };
  });
  return [first, ...others];
}

/** An entry for a message that others wrote: the messages follow one another. */
function foreign({ oak: _, uuid, ...inner }, { at, parent, sessionId }) {
  const type = ['assistant', 'system'].includes(inner.role) ? inner.role : 'user';
  const seed = `${sessionId}\0${at}\0${JSON.stringify(inner)}`;
  return {
    type,
    uuid: typeof uuid === 'string' && uuid !== '' ? uuid : madeUuid(seed),
    parentUuid: parent,
    sessionId,
    // The model takes no message of the system's.
    ...(type === 'system' ? { content: inner.content } : { message: inner }),
  };
}

/** The same for the same text: a transcript that is read twice has the same entries. */
function madeUuid(text) {
  const hex = createHash('sha256').update(text).digest('hex');
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`];
  return [...parts, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-');
}

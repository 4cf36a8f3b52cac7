/**
 * Completes session store drivers of programs: what a driver leaves out is derived from the rest.
 *
 * @module
 */
import { InvalidConfigError } from '../errors.js';
import { read } from '../plain.js';
import { messageIdOf, messageRow, uuidOf } from './entry.js';
import { encodeSessionKey } from './key.js';
import { foldSessionSummary } from './summary.js';

const MANDATORY = [
  'appendEntries',
  'loadEntries',
  'registerSession',
  'listSessions',
  'deleteSession',
];
/** They change and read the same rows: without one of them the others are of no use. */
const INDEX = ['appendSessionMessage', 'querySessionMessages', 'deleteSessionMessages'];
const SUMMARIES = ['upsertSummary', 'listSummaries'];
const ALONE = ['loadRecentEntries', 'loadEntriesByMessageIds', 'getSession', 'listSubkeys'];

/**
 * The methods of a driver, as functions that need no `this`.
 *
 * @param {unknown} driver
 * @param {string} path name of the driver, for messages
 * @returns {{ methods: Record<string, Function>, derived: string[] }} all methods, and the names of
 *   those that the driver does not have
 * @throws {InvalidConfigError} when it is no driver
 */
export function completeDriver(driver, path) {
  if (typeof driver !== 'object' || driver === null) {
    throw new InvalidConfigError(`${path} must be a session store driver`);
  }
  const own = ownMethods(driver, [...MANDATORY, ...INDEX, ...SUMMARIES, ...ALONE], path);
  const missing = MANDATORY.find((name) => own[name] === undefined);
  if (missing) {
    throw new InvalidConfigError(`${path} has no method ${missing}: a driver must have it`);
  }
  for (const group of [INDEX, SUMMARIES]) {
    if (!group.every((name) => own[name])) for (const name of group) delete own[name];
  }
  const derived = [...INDEX, ...SUMMARIES, ...ALONE].filter((name) => own[name] === undefined);
  return { methods: complete(own), derived };
}

/** Those of the named methods that an object has, bound to it. */
export function ownMethods(object, names, path) {
  const found = names.map((name) => [name, read(object, name, path)]);
  const methods = found.filter(([, method]) => typeof method === 'function');
  return Object.fromEntries(methods.map(([name, method]) => [name, method.bind(object)]));
}

function complete(own) {
  const derived = { ...deriveReads(own), ...deriveIndex(own), ...deriveSummaries(own) };
  // Deriving the sub-paths watches the writes of the driver.
  return { ...derived, ...own, ...(own.listSubkeys ? {} : deriveSubkeys(own)) };
}

function deriveReads({ loadEntries, listSessions }) {
  return {
    async loadRecentEntries(key, limit) {
      const entries = await loadEntries(key);
      return entries && (limit > 0 ? entries.slice(-limit) : []);
    },
    async loadEntriesByMessageIds(key, ids) {
      const wanted = new Set(ids);
      const isWanted = (entry) => wanted.has(messageIdOf(entry)) || wanted.has(uuidOf(entry));
      return ((await loadEntries(key)) ?? []).filter(isWanted);
    },
    async getSession(projectKey, sessionId) {
      const sessions = await listSessions(projectKey);
      return sessions.find((session) => session.sessionId === sessionId) ?? null;
    },
  };
}

/** The index is made of the transcript; which messages were taken out is known to this process only. */
function deriveIndex({ loadEntries }) {
  const hidden = new Map();
  const rowsOf = async (key) => {
    const rows = new Map();
    for (const entry of (await loadEntries(key)) ?? []) {
      const row = messageRow(entry);
      if (row && !rows.has(row.messageId)) rows.set(row.messageId, row);
    }
    return [...rows.values()];
  };
  return {
    async appendSessionMessage() {},
    async querySessionMessages(projectKey, conversationId, { limit, before, after } = {}) {
      const key = { projectKey, sessionId: conversationId };
      const sessionKey = encodeSessionKey(key);
      const isShown = ({ messageId, createdAt }) =>
        !hidden.get(sessionKey)?.has(messageId) &&
        (!before || createdAt < before) &&
        (!after || createdAt > after);
      const rows = (await rowsOf(key)).filter(isShown).reverse();
      return rows.slice(0, limit > 0 ? limit : 100).map((row) => {
        return { sessionKey, conversationId, ...row, status: 'done', mtime: row.createdAt };
      });
    },
    async deleteSessionMessages(key) {
      hidden.set(encodeSessionKey(key), new Set((await rowsOf(key)).map((row) => row.messageId)));
    },
  };
}

function deriveSummaries({ loadEntries, listSessions }) {
  const folded = async (projectKey, { sessionId, mtime }) => {
    const key = { projectKey, sessionId };
    const entries = await loadEntries(key);
    return entries && foldSessionSummary(undefined, key, entries, { mtime });
  };
  return {
    // A summary is folded when it is asked for.
    async upsertSummary() {},
    async listSummaries(projectKey) {
      const summaries = [];
      for (const session of await listSessions(projectKey)) {
        const summary = await folded(projectKey, session);
        if (summary) summaries.push(summary);
      }
      return summaries;
    },
  };
}

/** Sub-paths cannot be found in what a driver must have: those that this process wrote are told. */
function deriveSubkeys({ appendEntries, deleteSession }) {
  const subpaths = new Map();
  const sessionKey = ({ projectKey, sessionId }) => encodeSessionKey({ projectKey, sessionId });
  return {
    async appendEntries(key, entries) {
      await appendEntries(key, entries);
      if (!key.subpath || entries.length === 0) return;
      const id = sessionKey(key);
      subpaths.set(id, (subpaths.get(id) ?? new Set()).add(key.subpath));
    },
    async deleteSession(key) {
      await deleteSession(key);
      if (key.subpath) subpaths.get(sessionKey(key))?.delete(key.subpath);
      else subpaths.delete(sessionKey(key));
    },
    async listSubkeys(key) {
      return [...(subpaths.get(sessionKey(key)) ?? [])];
    },
  };
}

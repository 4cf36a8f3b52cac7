/**
 * A session store driver in the memory of the process.
 *
 * @module
 */
import { encodeSessionKey, readEntries, readKey, requireText } from './key.js';
import { messageIdOf, messageRow, uuidOf } from './entry.js';

/** Rows of the message index that a query gives when it names no limit. */
const PAGE = 100;

/** Keeps what it is given as long as the process lives. Values are copied on their way in and out. */
export class InMemoryDriver {
  /** Transcripts by encoded key: `{key, entries, places}`. */
  #transcripts = new Map();
  /** Sessions by encoded key of the main transcript. */
  #sessions = new Map();
  /** Summaries by the same. */
  #summaries = new Map();
  /** Message indexes by the same: `{rows, known}`. */
  #indexes = new Map();

  /** Appends entries; one with a known uuid takes the place of the older. */
  async appendEntries(key, entries) {
    const checked = readKey(key, 'appendEntries');
    const copies = structuredClone(readEntries(entries, 'appendEntries'));
    if (copies.length === 0) return;
    const transcript = this.#transcript(checked);
    for (const entry of copies) put(transcript, entry);
    if (checked.subpath === undefined) this.#touch(checked);
  }

  async loadEntries(key) {
    const transcript = this.#transcripts.get(encodeSessionKey(key));
    return transcript ? structuredClone(transcript.entries) : null;
  }

  async loadRecentEntries(key, limit) {
    const transcript = this.#transcripts.get(encodeSessionKey(key));
    if (!transcript) return null;
    return limit > 0 ? structuredClone(transcript.entries.slice(-limit)) : [];
  }

  async loadEntriesByMessageIds(key, ids) {
    const entries = this.#transcripts.get(encodeSessionKey(key))?.entries ?? [];
    const wanted = new Set(ids);
    const isWanted = (entry) => wanted.has(messageIdOf(entry)) || wanted.has(uuidOf(entry));
    return structuredClone(entries.filter(isWanted));
  }

  async registerSession({ projectKey, sessionId, userId, title, metadata }) {
    const session = this.#touch(readKey({ projectKey, sessionId }, 'registerSession'));
    // What is not given keeps its value.
    if (userId !== undefined) session.userId = userId;
    if (title !== undefined) session.title = title;
    if (metadata !== undefined) session.metadata = structuredClone(metadata);
  }

  async listSessions(projectKey) {
    return [...this.#of(this.#sessions, projectKey)].map(shown);
  }

  async getSession(projectKey, sessionId) {
    const session = this.#sessions.get(encodeSessionKey({ projectKey, sessionId }));
    return session ? shown(session) : null;
  }

  async upsertSummary({ projectKey, sessionId, mtime, data }) {
    const id = encodeSessionKey({ projectKey, sessionId });
    this.#summaries.set(id, { projectKey, sessionId, mtime, data: structuredClone(data) });
  }

  async listSummaries(projectKey) {
    return [...this.#of(this.#summaries, projectKey)].map(({ sessionId, mtime, data }) => {
      return { sessionId, mtime, data: structuredClone(data) };
    });
  }

  async listSubkeys({ projectKey, sessionId }) {
    const { sessionId: id } = readKey({ projectKey, sessionId }, 'listSubkeys');
    return [...this.#of(this.#transcripts, projectKey, 'key')]
      .filter(({ key }) => key.sessionId === id && key.subpath !== undefined)
      .map(({ key }) => key.subpath);
  }

  /** Deletes a transcript; a main one with all that belongs to the session. */
  async deleteSession(key) {
    const { projectKey, sessionId, subpath } = readKey(key, 'deleteSession');
    this.#transcripts.delete(encodeSessionKey(key));
    if (subpath !== undefined) return;
    const id = encodeSessionKey({ projectKey, sessionId });
    for (const rows of [this.#sessions, this.#summaries, this.#indexes]) rows.delete(id);
    for (const sub of await this.listSubkeys({ projectKey, sessionId })) {
      this.#transcripts.delete(encodeSessionKey({ projectKey, sessionId, subpath: sub }));
    }
  }

  /** Takes messages of a main transcript into the index; the first entry of a message makes its row. */
  async appendSessionMessage(key, entries) {
    const { projectKey, sessionId, subpath } = readKey(key, 'appendSessionMessage');
    if (subpath !== undefined) return;
    const sessionKey = encodeSessionKey({ projectKey, sessionId });
    for (const entry of readEntries(entries, 'appendSessionMessage')) {
      const row = messageRow(entry);
      const index = this.#indexes.get(sessionKey) ?? { rows: [], known: new Set() };
      if (!row || index.known.has(row.messageId)) continue;
      index.known.add(row.messageId);
      const mtime = Date.now();
      index.rows.push({ sessionKey, conversationId: sessionId, ...row, status: 'done', mtime });
      this.#indexes.set(sessionKey, index);
    }
  }

  /** Rows of the index, newest first. Times are bounds that do not belong to the range. */
  async querySessionMessages(projectKey, conversationId, { limit, before, after } = {}) {
    const index = this.#indexes.get(encodeSessionKey({ projectKey, sessionId: conversationId }));
    const rows = (index?.rows ?? []).filter(
      ({ createdAt }) => (!before || createdAt < before) && (!after || createdAt > after),
    );
    return structuredClone(rows.reverse().slice(0, limit > 0 ? limit : PAGE));
  }

  /** Empties the index. Its messages stay known: an entry that is written again does not come back. */
  async deleteSessionMessages(key) {
    const index = this.#indexes.get(encodeSessionKey(key));
    if (index) index.rows = [];
  }

  /** @returns {string[]} projects that have a transcript or a session */
  listProjectKeys() {
    const transcripts = [...this.#transcripts.values()].map(({ key }) => key.projectKey);
    const sessions = [...this.#sessions.values()].map(({ projectKey }) => projectKey);
    return [...new Set([...transcripts, ...sessions])];
  }

  /** @returns {number} */
  countEntries(key) {
    return this.#transcripts.get(encodeSessionKey(key))?.entries.length ?? 0;
  }

  clearAll() {
    for (const rows of [this.#transcripts, this.#sessions, this.#summaries, this.#indexes]) {
      rows.clear();
    }
  }

  #transcript(key) {
    const id = encodeSessionKey(key);
    const transcript = this.#transcripts.get(id) ?? { key, entries: [], places: new Map() };
    this.#transcripts.set(id, transcript);
    return transcript;
  }

  #touch({ projectKey, sessionId }) {
    const id = encodeSessionKey({ projectKey, sessionId });
    const now = Date.now();
    const session = this.#sessions.get(id) ?? { projectKey, sessionId, createdAt: now };
    session.mtime = now;
    this.#sessions.set(id, session);
    return session;
  }

  /** The values of a project; `part` names the member that has the project key. */
  *#of(rows, projectKey, part) {
    requireText(projectKey, 'projectKey', 'InMemoryDriver');
    for (const row of rows.values()) {
      if ((part ? row[part] : row).projectKey === projectKey) yield row;
    }
  }
}

function put({ entries, places }, entry) {
  const uuid = uuidOf(entry);
  const place = places.get(uuid);
  if (uuid !== undefined && place !== undefined) {
    entries[place] = entry;
    return;
  }
  if (uuid !== undefined) places.set(uuid, entries.length);
  entries.push(entry);
}

function shown({ sessionId, mtime, createdAt, userId, title, metadata }) {
  const known = Object.entries({ userId, title, metadata }).filter(([, value]) => value != null);
  return { sessionId, mtime, createdAt, ...structuredClone(Object.fromEntries(known)) };
}

/**
 * A store that saves whole transcripts, used as one that appends entries.
 *
 * @module
 */
import { readKey } from './key.js';
import { foldSessionSummary } from './summary.js';
import { toEntries, toMessages } from './transcript-messages.js';

/** Transcripts that are kept, so that an append need not load. */
const KEPT = 64;

/**
 * Keeps the entries of a session and saves all of them on each append. The store knows sessions by their
 * id alone; transcripts of sub-agents live as long as the process.
 */
export class WholeTranscripts {
  #store;
  /** By session id: `{entries, metadata, facts}`. */
  #sessions = new Map();
  /** Entries of sub-agents by session id and sub-path. */
  #subpaths = new Map();

  /** @param {{ save: Function, load: Function, list?: Function, delete?: Function }} store */
  constructor(store) {
    this.#store = store;
  }

  /** The methods of an appending store, as far as the store can serve them. */
  methods() {
    return {
      append: this.#append,
      load: this.#load,
      listSubkeys: async ({ sessionId }) => [...(this.#subpaths.get(sessionId)?.keys() ?? [])],
      registerSession: this.#register,
      getSession: this.#get,
      ...(this.#store.list && { listSessions: this.#list }),
      ...(this.#store.delete && { delete: this.#delete }),
    };
  }

  #append = async (key, entries) => {
    const { sessionId, subpath } = readKey(key, 'append');
    if (subpath !== undefined) {
      const transcripts = this.#subpaths.get(sessionId) ?? new Map();
      transcripts.set(subpath, [...(transcripts.get(subpath) ?? []), ...entries]);
      this.#subpaths.set(sessionId, transcripts);
      return;
    }
    const session = this.#sessions.get(sessionId) ?? (await this.#read(sessionId)) ?? fresh();
    const next = { ...session, entries: merged(session.entries, entries) };
    next.metadata = metadataOf(sessionId, next);
    // What was really saved is not known when this fails: the next call reads it.
    this.#sessions.delete(sessionId);
    await this.#store.save(sessionId, toMessages(next.entries), next.metadata);
    this.#keep(sessionId, next);
  };

  #load = async (key) => {
    const { sessionId, subpath } = readKey(key, 'load');
    if (subpath !== undefined) return this.#subpaths.get(sessionId)?.get(subpath) ?? null;
    const session = await this.#read(sessionId);
    if (!session) return null;
    this.#keep(sessionId, session);
    return session.entries;
  };

  /** Takes effect with the next save: a store of transcripts has no place for a session without one. */
  #register = async ({ sessionId, userId, title, metadata }) => {
    const session = this.#sessions.get(sessionId) ?? (await this.#read(sessionId)) ?? fresh();
    const given = Object.entries({ userId, title, metadata }).filter(([, value]) => value != null);
    this.#keep(sessionId, {
      ...session,
      facts: { ...session.facts, ...Object.fromEntries(given) },
    });
  };

  #get = async (_, sessionId) => {
    const session = this.#sessions.get(sessionId) ?? (await this.#read(sessionId));
    return session ? row(sessionId, session.metadata, session.facts) : null;
  };

  #list = async () => {
    const listed = await this.#store.list();
    if (!Array.isArray(listed)) throw new TypeError('list() gave no array');
    return listed.map((metadata) => row(metadata.id, metadata, metadata.oak));
  };

  #delete = async (key) => {
    const { sessionId, subpath } = readKey(key, 'delete');
    if (subpath !== undefined) {
      this.#subpaths.get(sessionId)?.delete(subpath);
      return;
    }
    this.#sessions.delete(sessionId);
    this.#subpaths.delete(sessionId);
    await this.#store.delete(sessionId);
  };

  async #read(sessionId) {
    const stored = await this.#store.load(sessionId);
    if (stored === null || stored === undefined) return undefined;
    const { metadata, messages } = stored;
    if (!Array.isArray(messages)) throw new TypeError('load() gave no array of messages');
    const known = typeof metadata === 'object' && metadata !== null ? metadata : {};
    return { entries: toEntries(messages, sessionId), metadata: known, facts: known.oak };
  }

  #keep(sessionId, session) {
    this.#sessions.delete(sessionId);
    this.#sessions.set(sessionId, session);
    if (this.#sessions.size > KEPT) this.#sessions.delete(this.#sessions.keys().next().value);
  }
}

function fresh() {
  return { entries: [], metadata: {}, facts: undefined };
}

/** An entry with a known uuid takes the place of the older. */
function merged(entries, added) {
  const places = new Map(entries.map(({ uuid }, place) => [uuid, place]));
  const result = [...entries];
  for (const entry of added) {
    const place = entry.uuid === undefined ? undefined : places.get(entry.uuid);
    if (place === undefined) result.push(entry);
    else result[place] = entry;
  }
  return result;
}

/** What a transcript store keeps of a session; what it kept and nothing replaces stays. */
function metadataOf(sessionId, { entries, metadata, facts }) {
  const { data } = foldSessionSummary(undefined, { sessionId }, entries);
  const models = entries.map(({ message }) => message?.model);
  const found = {
    cwd: data.cwd,
    model: models.findLast((model) => typeof model === 'string'),
    summary: data.customTitle ?? facts?.title,
    tag: data.tag,
    firstPrompt: data.firstPrompt,
    gitBranch: data.gitBranch,
    oak: facts,
  };
  const known = Object.entries(found).filter(([, value]) => value !== undefined);
  return { cwd: '', model: '', ...metadata, ...Object.fromEntries(known) };
}

function row(sessionId, metadata, facts) {
  return {
    sessionId,
    mtime: milliseconds(metadata.updatedAt) ?? Date.now(),
    createdAt: milliseconds(metadata.createdAt),
    userId: facts?.userId,
    title: metadata.summary ?? facts?.title,
    metadata: facts?.metadata,
  };
}

/** A Date, its text, or milliseconds. */
function milliseconds(time) {
  const value = typeof time === 'string' ? Date.parse(time) : Number(time);
  return time !== undefined && time !== null && Number.isFinite(value) ? value : undefined;
}

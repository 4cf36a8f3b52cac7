/**
 * Sessions in files, as whole transcripts under string ids.
 *
 * @module
 */
import { resolve } from 'node:path';

import { InvalidConfigError, KernelError, SessionStoreError, traced, typed } from '../errors.js';
import { toJson } from '../json.js';
import { native } from '../native.js';
import { brand } from './brand.js';
import { homeFolder } from './home.js';
import { isEntry } from './key.js';
import { NativeSessionStore } from './native-store.js';

const NUMBERS = ['limit', 'offset', 'tail'];
const FORK_OPTIONS = ['newSessionId', 'upToMessageIndex', 'upToMessageId', 'overwrite'];

/**
 * A folder of sessions. With a string id its methods work on messages; with a key object they are
 * those of the session stores of the Claude Agent SDK, so that it can be given as `session.store`.
 */
export class FileSessionStore {
  #documents;
  #entries;

  /**
   * @param {string | { dir?: string, durability?: string, maxBytes?: number }} [options] a string is
   *   the folder
   * @throws {InvalidConfigError} also when no folder is given and the user has no home directory
   */
  constructor(options) {
    const text = typed('FileSessionStore: the options', () => settingsText(options));
    try {
      this.#documents = native.openDocuments(text, homeFolder());
    } catch (error) {
      if (error instanceof KernelError) Error.captureStackTrace(error, FileSessionStore);
      throw error;
    }
    const store = this.#documents.store();
    this.#entries = new NativeSessionStore(store);
    // The methods of a class that extends this one are called, whatever they do.
    if (new.target === FileSessionStore) brand(this, store);
  }

  /** Stores messages as those of the session. Of `metadata` what is missing stays, null clears. */
  async save(sessionId, messages, metadata = {}) {
    const id = idOf(sessionId);
    if (!isEntry(metadata)) throw invalid('metadata must be an object', sessionId);
    const texts = [json(listOf(messages, sessionId), sessionId), json(metadata, sessionId)];
    await of(sessionId, this.#documents.save(id, ...texts));
  }

  /** With a string id `{metadata, messages}`, with a key the entries; null when there is nothing. */
  async load(session, options) {
    if (isEntry(session)) return this.#entries.load(session);
    const id = idOf(session);
    const text = json(numbers(options, NUMBERS, session), session);
    const loaded = JSON.parse(await of(session, this.#documents.load(id, text)));
    return loaded && { ...loaded, metadata: dated(loaded.metadata) };
  }

  /** The metadata of sessions, that changed last first. */
  async list(options) {
    const { includeWorktrees } = optionsOf(options);
    if (includeWorktrees !== undefined && typeof includeWorktrees !== 'boolean') {
      throw invalid('includeWorktrees must be true or false');
    }
    const text = json({ ...numbers(options, ['limit']), includeWorktrees });
    return JSON.parse(await traced(this.#documents.list(text))).map(dated);
  }

  /** Copies a session and gives the id of the copy; null when there is no such session. */
  async fork(sourceSessionId, options) {
    const id = idOf(sourceSessionId);
    const given = optionsOf(options, sourceSessionId);
    const { newSessionId, upToMessageId, overwrite } = given;
    if (newSessionId !== undefined) idOf(newSessionId);
    if (upToMessageId !== undefined && typeof upToMessageId !== 'string') {
      throw invalid('upToMessageId must be a string', sourceSessionId);
    }
    if (overwrite !== undefined && typeof overwrite !== 'boolean') {
      throw invalid('overwrite must be true or false', sourceSessionId);
    }
    numbers(given, ['upToMessageIndex'], sourceSessionId);
    const chosen = Object.fromEntries(FORK_OPTIONS.map((name) => [name, given[name]]));
    const forked = this.#documents.fork(id, json(chosen, sourceSessionId));
    return (await of(sourceSessionId, forked)) ?? null;
  }

  /** With a string id whether there was such a session; with a key nothing. */
  async delete(session) {
    if (isEntry(session)) return this.#entries.delete(session);
    return of(session, this.#documents.delete(idOf(session)));
  }

  /** Gives a title; nothing happens when there is no such session. */
  async rename(sessionId, title) {
    const id = idOf(sessionId);
    if (typeof title !== 'string') throw invalid('the title must be a string', sessionId);
    await of(sessionId, this.#documents.rename(id, title.toWellFormed()));
  }

  /** Gives a tag, or with null clears it; nothing happens when there is no such session. */
  async tag(sessionId, tag) {
    const id = idOf(sessionId);
    if (tag !== null && typeof tag !== 'string') {
      throw invalid('the tag must be a string or null', sessionId);
    }
    await of(sessionId, this.#documents.tag(id, tag?.toWellFormed()));
  }

  async exists(sessionId) {
    return of(sessionId, this.#documents.exists(idOf(sessionId)));
  }

  /** With a string id appends messages and gives their new number; with a key appends entries. */
  async append(session, items) {
    if (isEntry(session)) return this.#entries.append(session, items);
    const id = idOf(session);
    return of(session, this.#documents.append(id, json(listOf(items, session), session)));
  }

  async listSessions(projectKey) {
    return this.#entries.listSessions(projectKey);
  }

  async listSessionSummaries(projectKey) {
    return this.#entries.listSessionSummaries(projectKey);
  }

  async listSubkeys(key) {
    return this.#entries.listSubkeys(key);
  }
}

/**
 * @param {ConstructorParameters<typeof FileSessionStore>[0]} [options]
 * @returns {FileSessionStore}
 */
export function createFileSessionStore(options) {
  return new FileSessionStore(options);
}

function settingsText(options = {}) {
  const given = typeof options === 'string' ? { dir: options } : options;
  if (!isEntry(given)) {
    throw new InvalidConfigError('FileSessionStore: the options must be a path or an object');
  }
  const { dir, durability, maxBytes } = given;
  // The process may change its directory later.
  const folder = typeof dir === 'string' && dir.trim() !== '' ? resolve(dir) : dir;
  return toJson({ dir: folder, durability, maxBytes: finite(maxBytes) });
}

/** JSON would make null of it, which means that it is missing. */
function finite(number) {
  return typeof number === 'number' && !Number.isFinite(number) ? String(number) : number;
}

/** An error of the core about a session says which. */
async function of(sessionId, promise) {
  try {
    return await traced(promise);
  } catch (error) {
    if (error instanceof SessionStoreError) error.sessionId = sessionId;
    throw error;
  }
}

function idOf(sessionId) {
  if (typeof sessionId !== 'string') throw invalid('the session id must be a string');
  if (!sessionId.isWellFormed()) {
    throw about(
      new SessionStoreError(
        'E_INVALID_SESSION_ID',
        'Session ID contains invalid character: half a character',
      ),
      sessionId,
    );
  }
  return sessionId;
}

function listOf(messages, sessionId) {
  if (!Array.isArray(messages)) throw invalid('the messages must be an array', sessionId);
  const at = messages.findIndex((message) => !isEntry(message));
  if (at >= 0) throw invalid(`messages[${at}] must be an object`, sessionId);
  return messages;
}

function optionsOf(options, sessionId) {
  if (options === undefined || options === null) return {};
  if (!isEntry(options)) throw invalid('the options must be an object', sessionId);
  return options;
}

/** The named numbers among options. */
function numbers(options, names, sessionId) {
  const given = optionsOf(options, sessionId);
  const found = names.map((name) => [name, given[name] ?? undefined]);
  for (const [name, value] of found) {
    if (value !== undefined && !Number.isSafeInteger(value)) {
      throw invalid(`${name} must be a whole number`, sessionId);
    }
  }
  return Object.fromEntries(found);
}

function json(value, sessionId) {
  try {
    return toJson(value);
  } catch (error) {
    const message = 'a message or its metadata cannot be written as JSON';
    throw about(new SessionStoreError('E_SERIALIZE_FAILED', message, error), sessionId);
  }
}

function invalid(message, sessionId) {
  return about(new SessionStoreError('E_INVALID_ARGUMENT', message), sessionId);
}

function about(error, sessionId) {
  if (typeof sessionId === 'string') error.sessionId = sessionId;
  return error;
}

function dated({ createdAt, updatedAt, ...metadata }) {
  return { ...metadata, createdAt: new Date(createdAt), updatedAt: new Date(updatedAt) };
}

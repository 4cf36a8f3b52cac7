/**
 * A session store of the Claude Agent SDK over a driver.
 *
 * @module
 */
import { InvalidConfigError, typed } from '../errors.js';
import { completeDriver } from './driver.js';
import { InMemoryDriver } from './in-memory-driver.js';
import { encodeSessionKey, readEntries, readKey, requireText } from './key.js';
import { foldSessionSummary } from './summary.js';

/** Summaries that are kept to fold the next entries into. */
const KEPT = 1_000;

/**
 * The message index of a store, for the kernel: its methods with the project key of the store. Nothing
 * when the value is no such store or its driver has no index of its own.
 *
 * @type {(store: unknown) => { querySessionMessages: Function, deleteSessionMessages: Function } | undefined}
 */
export let indexOf;

/** Stores transcripts, their message index and their summaries through a driver. */
export class CloudBaseSessionStore {
  #driver;
  #methods;
  #projectKey;
  #foldsSummaries;
  #hasIndex;
  /** The last append of each session, by encoded key. */
  #appends = new Map();
  #summaries = new Map();

  /**
   * @param {{ driver?: object, projectKey?: string }} [options] a `projectKey` takes the place of that
   *   of every key
   * @throws {InvalidConfigError} when the driver lacks a method that cannot be derived
   */
  constructor(options = {}) {
    typed('CloudBaseSessionStore: the options', () => {
      if (typeof options !== 'object' || options === null) {
        throw new InvalidConfigError('CloudBaseSessionStore: the options must be an object');
      }
      const { driver = new InMemoryDriver(), projectKey } = options;
      if (projectKey !== undefined && (typeof projectKey !== 'string' || projectKey === '')) {
        throw new InvalidConfigError(
          'CloudBaseSessionStore: projectKey must be a non-empty string',
        );
      }
      const { methods, derived } = completeDriver(driver, 'CloudBaseSessionStore: the driver');
      warnOfDerived(driver, derived);
      this.#driver = driver;
      this.#methods = methods;
      this.#hasIndex = !derived.includes('querySessionMessages');
      this.#foldsSummaries = !derived.includes('upsertSummary');
      this.#projectKey = projectKey;
    });
  }

  /** Appends entries; calls for one session are carried out one after the other. */
  async append(key, entries) {
    const own = this.#key(key, 'append');
    const checked = readEntries(entries, 'append');
    if (checked.length === 0) return;
    await this.#inOrder(own, () => this.#append(own, checked));
  }

  async load(key) {
    return (await this.#methods.loadEntries(this.#key(key, 'load'))) ?? null;
  }

  /** The newest entries, oldest first; null when the transcript was never written. */
  async loadRecent(key, limit) {
    return (await this.#methods.loadRecentEntries(this.#key(key, 'loadRecent'), limit)) ?? null;
  }

  async listSessions(projectKey) {
    return this.#methods.listSessions(this.#project(projectKey, 'listSessions'));
  }

  async listSessionSummaries(projectKey) {
    return this.#methods.listSummaries(this.#project(projectKey, 'listSessionSummaries'));
  }

  /** Deletes a transcript; a main one with all that belongs to the session. */
  async delete(key) {
    const own = this.#key(key, 'delete');
    await this.#inOrder(own, async () => {
      if (own.subpath === undefined) this.#summaries.delete(encodeSessionKey(own));
      await this.#methods.deleteSession(own);
    });
  }

  async listSubkeys(key) {
    const { projectKey, sessionId } = this.#key(key, 'listSubkeys');
    return this.#methods.listSubkeys({ projectKey, sessionId });
  }

  /** Stores what is known of a session, which may have no entries yet. */
  async registerSession(session) {
    const { projectKey, sessionId } = this.#key(session, 'registerSession');
    const { userId, title, metadata } = session;
    await this.#methods.registerSession({ projectKey, sessionId, userId, title, metadata });
  }

  async getSession(projectKey, sessionId) {
    const own = this.#key({ projectKey, sessionId }, 'getSession');
    return (await this.#methods.getSession(own.projectKey, own.sessionId)) ?? null;
  }

  /** The driver as it was given. */
  getDriver() {
    return this.#driver;
  }

  static {
    indexOf = (store) =>
      typeof store === 'object' && store !== null && #driver in store && store.#hasIndex
        ? store.#index()
        : undefined;
  }

  #index() {
    return {
      querySessionMessages: (projectKey, sessionId, options) => {
        const key = this.#key({ projectKey, sessionId }, 'querySessionMessages');
        return this.#methods.querySessionMessages(key.projectKey, key.sessionId, options);
      },
      deleteSessionMessages: (key) =>
        this.#methods.deleteSessionMessages(this.#key(key, 'deleteSessionMessages')),
    };
  }

  async #append(key, entries) {
    await this.#methods.appendEntries(key, entries);
    if (key.subpath !== undefined) return;
    await this.#methods.appendSessionMessage(key, entries);
    if (this.#foldsSummaries) await this.#fold(key, entries);
  }

  async #fold(key, entries) {
    const summary = foldSessionSummary(await this.#summary(key), key, entries, {
      mtime: Date.now(),
    });
    this.#keep(encodeSessionKey(key), summary);
    await this.#methods.upsertSummary({ projectKey: key.projectKey, ...summary });
  }

  /** What was folded so far, also by a process before this one. */
  async #summary(key) {
    const kept = this.#summaries.get(encodeSessionKey(key));
    if (kept) return kept;
    const stored = (await this.#methods.listSummaries(key.projectKey)) ?? [];
    return stored.find(({ sessionId }) => sessionId === key.sessionId);
  }

  #keep(id, summary) {
    this.#summaries.delete(id);
    this.#summaries.set(id, summary);
    if (this.#summaries.size > KEPT) {
      this.#summaries.delete(this.#summaries.keys().next().value);
    }
  }

  /** Work on one session, after what was asked of it before. */
  async #inOrder({ projectKey, sessionId }, work) {
    const id = encodeSessionKey({ projectKey, sessionId });
    const before = this.#appends.get(id);
    const done = (async () => {
      await before?.catch(() => {});
      await work();
    })();
    this.#appends.set(id, done);
    try {
      await done;
    } finally {
      if (this.#appends.get(id) === done) this.#appends.delete(id);
    }
  }

  #key(key, call) {
    const name = `CloudBaseSessionStore.${call}`;
    if (this.#projectKey === undefined) return readKey(key, name);
    return readKey({ ...key, projectKey: this.#projectKey }, name);
  }

  #project(projectKey, call) {
    if (this.#projectKey !== undefined) return this.#projectKey;
    requireText(projectKey, 'projectKey', `CloudBaseSessionStore.${call}`);
    return projectKey;
  }
}

/** Drivers whose gaps were told. */
const warned = new WeakSet();

function warnOfDerived(driver, derived) {
  if (derived.length === 0 || warned.has(driver)) return;
  warned.add(driver);
  process.emitWarning(
    `CloudBaseSessionStore: the driver has no ${derived.join(', ')}: derived from its other ` +
      'methods, which is slower; cleared histories and sub-paths are then known to this process only',
    { code: 'OAK_DRIVER_DERIVED' },
  );
}

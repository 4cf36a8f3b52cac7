/** Names a transcript; without `subpath` the main one of a session. */
export interface SessionKey {
  projectKey: string;
  sessionId: string;
  /** Of a sub-agent; opaque. */
  subpath?: string;
}

/** An entry of a transcript: JSON of any kind. Entries with a `uuid` are stored once. */
export type SessionStoreEntry = Record<string, unknown>;

/** What is folded from the entries of a session: titles, the first prompt and others. */
export interface SessionSummaryEntry {
  sessionId: string;
  /** Milliseconds since the epoch. */
  mtime: number;
  data: Record<string, unknown>;
}

/**
 * Keeps transcripts, with the methods of the Claude Agent SDK. Give one as `session.store`: classes
 * of your own are welcome.
 */
export interface SessionStore {
  /** Appends entries in their order. */
  append(key: SessionKey, entries: any[]): Promise<void>;
  /** The entries in the order of their appends; null when there were none. */
  load(key: SessionKey): Promise<any[] | null>;
  /** Sessions with a main transcript. `mtime` is in milliseconds since the epoch. */
  listSessions?(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;
  listSessionSummaries?(projectKey: string): Promise<SessionSummaryEntry[]>;
  /** Deletes a transcript; a main one with all its sub-paths. */
  delete?(key: SessionKey): Promise<void>;
  /** The sub-paths of a session. */
  listSubkeys?(key: { projectKey: string; sessionId: string }): Promise<string[]>;
}

/** What `openSessionStore` opens, as in `session` of a configuration. Other keys have no effect. */
export interface SessionDatabase {
  database: 'memory' | 'file' | 'sqlite' | 'pgsql';
  /** Folder of a `file` database (default `~/.open-agent-sdk/sessions`), file of a `sqlite` one. */
  path?: string;
  /** Address of a `pgsql` database. */
  url?: string;
  /** In front of the names of tables; default `oak_`. */
  tablePrefix?: string;
  /**
   * When an append counts as done: with `process` (default) it survives the end of the process, with
   * `fsync` that of the machine.
   */
  durability?: 'process' | 'fsync';
  [other: string]: unknown;
}

/**
 * Opens a store of the kernel, to be given as `session.store` or used on its own. Does no I/O before
 * its first call.
 *
 * @throws {InvalidConfigError} a setting is missing or has a wrong value
 */
export declare function openSessionStore(settings: SessionDatabase): Required<SessionStore>;

/** A key as one text, its parts joined by `|`; `%` and `|` inside a part are escaped. */
export declare function encodeSessionKey(key: SessionKey): string;

/** A message in the short form that lists show. */
export interface SessionMessage {
  role: 'user' | 'assistant' | 'system';
  uuid?: string;
  sessionId?: string;
  content?: string;
  parentToolUseId?: string;
}

/** Reads a raw transcript object; null when it is no message. */
export declare function toSessionMessage(raw: unknown): SessionMessage | null;

/** A row of a message index. */
export interface SessionMessageMeta {
  sessionKey: string;
  conversationId: string;
  messageId: string;
  role: 'user' | 'assistant' | 'system';
  /** Milliseconds since the epoch. */
  createdAt: number;
  status: MessageStatus;
  /** Milliseconds since the epoch. */
  mtime: number;
}

/** What a driver knows of a session beside its entries. */
export interface DriverSession {
  sessionId: string;
  /** Milliseconds since the epoch. */
  mtime: number;
  userId?: string;
  title?: string;
  metadata?: Record<string, unknown>;
  /** Milliseconds since the epoch. */
  createdAt?: number;
}

/**
 * Where `CloudBaseSessionStore` keeps its data. What a driver leaves out is derived from the methods it
 * must have.
 */
export interface SessionStoreDriver {
  /** Appends entries in order; an entry with a known `uuid` must not be stored twice. */
  appendEntries(key: SessionKey, entries: any[]): Promise<void>;
  /** Entries in the order they were written; null when there were none. */
  loadEntries(key: SessionKey): Promise<any[] | null>;
  /** Stores what is known of a session, which may exist already. */
  registerSession(session: {
    projectKey: string;
    sessionId: string;
    userId: string;
    title?: string;
    metadata?: Record<string, unknown>;
  }): Promise<void>;
  /** Sessions of a project, without sub-paths. */
  listSessions(projectKey: string): Promise<DriverSession[]>;
  /** Deletes a transcript; a main one with all that belongs to the session. */
  deleteSession(key: SessionKey): Promise<void>;
  /** The newest entries, oldest first. */
  loadRecentEntries?(key: SessionKey, limit: number): Promise<any[] | null>;
  /** Entries whose `message.id` or `uuid` is one of the ids. */
  loadEntriesByMessageIds?(key: SessionKey, ids: string[]): Promise<any[]>;
  getSession?(projectKey: string, sessionId: string): Promise<DriverSession | null>;
  upsertSummary?(summary: SessionSummaryEntry & { projectKey: string }): Promise<void>;
  listSummaries?(projectKey: string): Promise<SessionSummaryEntry[]>;
  listSubkeys?(key: { projectKey: string; sessionId: string }): Promise<string[]>;
  /** Takes messages into the index. */
  appendSessionMessage?(key: SessionKey, entries: any[]): Promise<void>;
  /** Rows of the index, newest first; `before` and `after` are times outside of the range. */
  querySessionMessages?(
    projectKey: string,
    conversationId: string,
    options?: { limit?: number; before?: number; after?: number },
  ): Promise<SessionMessageMeta[]>;
  /** Empties the index of a session; its transcript stays. */
  deleteSessionMessages?(key: SessionKey): Promise<void>;
}

export interface CloudBaseSessionStoreOptions {
  /** Default: a new `InMemoryDriver`. */
  driver?: SessionStoreDriver;
  /** Takes the place of the project key of every key. */
  projectKey?: string;
}

/** A session store over a driver, with a message index and summaries. */
export declare class CloudBaseSessionStore implements SessionStore {
  /** @throws {InvalidConfigError} the driver lacks a method that cannot be derived */
  constructor(options?: CloudBaseSessionStoreOptions);
  append(key: SessionKey, entries: any[]): Promise<void>;
  load(key: SessionKey): Promise<any[] | null>;
  /** The newest entries, oldest first. */
  loadRecent(key: SessionKey, limit: number): Promise<any[] | null>;
  listSessions(projectKey: string): Promise<DriverSession[]>;
  listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]>;
  delete(key: SessionKey): Promise<void>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
  registerSession(session: {
    projectKey: string;
    sessionId: string;
    userId: string;
    title?: string;
    metadata?: Record<string, unknown>;
  }): Promise<void>;
  getSession(projectKey: string, sessionId: string): Promise<DriverSession | null>;
  getDriver(): SessionStoreDriver;
}

/** A driver in the memory of the process. */
export declare class InMemoryDriver implements Required<SessionStoreDriver> {
  constructor();
  appendEntries(key: SessionKey, entries: any[]): Promise<void>;
  loadEntries(key: SessionKey): Promise<any[] | null>;
  loadRecentEntries(key: SessionKey, limit: number): Promise<any[] | null>;
  loadEntriesByMessageIds(key: SessionKey, ids: string[]): Promise<any[]>;
  registerSession(session: {
    projectKey: string;
    sessionId: string;
    userId: string;
    title?: string;
    metadata?: Record<string, unknown>;
  }): Promise<void>;
  listSessions(projectKey: string): Promise<DriverSession[]>;
  getSession(projectKey: string, sessionId: string): Promise<DriverSession | null>;
  upsertSummary(summary: SessionSummaryEntry & { projectKey: string }): Promise<void>;
  listSummaries(projectKey: string): Promise<SessionSummaryEntry[]>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
  deleteSession(key: SessionKey): Promise<void>;
  appendSessionMessage(key: SessionKey, entries: any[]): Promise<void>;
  querySessionMessages(
    projectKey: string,
    conversationId: string,
    options?: { limit?: number; before?: number; after?: number },
  ): Promise<SessionMessageMeta[]>;
  deleteSessionMessages(key: SessionKey): Promise<void>;
  /** Projects that have a transcript or a session. */
  listProjectKeys(): string[];
  /** Number of entries of a transcript. */
  countEntries(key: SessionKey): number;
  /** Forgets everything. */
  clearAll(): void;
}

/** What a store of whole sessions knows of one. */
export interface SessionMetadata {
  id: string;
  cwd: string;
  model: string;
  createdAt: Date;
  updatedAt: Date;
  messageCount: number;
  summary?: string;
  tag?: string;
  firstPrompt?: string;
  gitBranch?: string;
  /** Bytes. */
  fileSize?: number;
  /** The session that this one was forked from. */
  parentSessionId?: string;
}

/** What is said of a session when it is saved: a missing member stays, null clears. */
export interface PartialSessionMetadata {
  cwd?: string | null;
  model?: string | null;
  summary?: string | null;
  tag?: string | null;
  firstPrompt?: string | null;
  gitBranch?: string | null;
}

/** A whole session. Messages have the form of the Messages API, and are kept as they are. */
export interface SessionData {
  metadata: SessionMetadata;
  messages: any[];
}

export interface FileSessionStoreOptions {
  /** Default `~/.open-agent-sdk/sessions`. */
  dir?: string;
  /**
   * When a write counts as done: with `fsync` (default) it survives the end of the machine, with
   * `process` that of the process. `rename` is another name for `process`.
   */
  durability?: 'process' | 'fsync' | 'rename';
  /** Largest transcript that is read, in bytes; default 64 MiB. */
  maxBytes?: number;
}

/**
 * A folder of sessions. With a string id its methods work on messages; with a key object they are
 * those of a `SessionStore`, so that it can be given as `session.store`. Calls that fail reject with a
 * `SessionStoreError`.
 */
export declare class FileSessionStore implements SessionStore {
  /**
   * @param options a string is the folder
   * @throws {InvalidConfigError} also when no folder is given and the user has no home directory
   */
  constructor(options?: string | FileSessionStoreOptions);
  /** Stores messages as those of the session. */
  save(sessionId: string, messages: any[], metadata?: PartialSessionMetadata): Promise<void>;
  /**
   * A session, or a part of its messages: `offset` drops from the front; `limit` keeps the last
   * messages, with `offset` the first behind it; `tail` keeps the last. 0 has no effect. Null when the
   * session does not exist or cannot be read.
   */
  load(
    sessionId: string,
    options?: { limit?: number; offset?: number; tail?: number },
  ): Promise<SessionData | null>;
  load(key: SessionKey): Promise<any[] | null>;
  /** Sessions, that changed last first; those whose id begins with `wt-` only when asked for. */
  list(options?: { limit?: number; includeWorktrees?: boolean }): Promise<SessionMetadata[]>;
  /**
   * Copies a session, or its beginning, and gives the id of the copy; null when there is no such
   * session. `upToMessageIndex` is the number of messages to keep, `upToMessageId` the `uuid` or `id`
   * of the last one.
   */
  fork(
    sourceSessionId: string,
    options?: {
      newSessionId?: string;
      upToMessageIndex?: number;
      upToMessageId?: string;
      /** Whether an existing session may be replaced. */
      overwrite?: boolean;
    },
  ): Promise<string | null>;
  /** Whether there was such a session. */
  delete(sessionId: string): Promise<boolean>;
  delete(key: SessionKey): Promise<void>;
  /** Gives a title; nothing happens when there is no such session. */
  rename(sessionId: string, title: string): Promise<void>;
  /** Gives or clears a tag; nothing happens when there is no such session. */
  tag(sessionId: string, tag: string | null): Promise<void>;
  exists(sessionId: string): Promise<boolean>;
  /** Appends messages and gives their new number. */
  append(sessionId: string, messages: any[]): Promise<number>;
  append(key: SessionKey, entries: any[]): Promise<void>;
  listSessions(projectKey: string): Promise<{ sessionId: string; mtime: number }[]>;
  listSessionSummaries(projectKey: string): Promise<SessionSummaryEntry[]>;
  listSubkeys(key: { projectKey: string; sessionId: string }): Promise<string[]>;
}

/** The same as `new FileSessionStore(options)`. */
export declare function createFileSessionStore(
  options?: string | FileSessionStoreOptions,
): FileSessionStore;

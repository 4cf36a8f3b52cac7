/** An array with the cursor of the next page; null on the last one. */
export type Page<T> = T[] & { readonly nextCursor: string | null };

/** The stored conversations of an agent; all are refused or empty when it stores none. */
export interface Sessions {
  /** The conversations, those with the newest entry first. */
  list(options?: {
    /** Only those of this user. Default: all. */
    userId?: string;
    /** 1 to 1,000. Default: 100. */
    limit?: number;
    /** `nextCursor` of an earlier page. */
    cursor?: string;
  }): Promise<Page<SessionSummary>>;
  /** One conversation; null when there is none. */
  get(conversationId: string): Promise<SessionSummary | null>;
  /** Deletes everything that belongs to a conversation. One that does not exist is deleted already. */
  delete(conversationId: string): Promise<void>;
  /** @throws {ResourceError} there is none */
  rename(conversationId: string, title: string): Promise<void>;
  /** Sets the tag, or takes it away. @throws {ResourceError} there is none */
  tag(conversationId: string, tag: string | null): Promise<void>;
  /**
   * Copies a conversation, or its beginning.
   *
   * @returns the id of the copy
   * @throws {ResourceError} there is none, or no such message
   * @throws {SessionStoreError} `E_SESSION_EXISTS`: the id of the copy is taken
   */
  fork(
    conversationId: string,
    options?: ForkOptions & {
      /** Id of the copy. Default: a random UUID. */
      conversationId?: string;
    },
  ): Promise<string>;
}

/** Where the conversations of an agent are kept. */
export interface SessionConfig {
  /** `false`: nothing is stored. Default: true when a store or a database is given. */
  enabled?: boolean;
  /** A store of this package, of the Claude Agent SDK, or of your own. */
  store?: SessionStore | TranscriptStore;
  /** A database of your own; excludes `store`. */
  database?: 'memory' | 'file' | 'sqlite' | 'pgsql';
  /** `'self'` for the databases above. Default: what the database needs. */
  provider?: 'cloudbase' | 'self';
  /** Folder of a `file` database (default `~/.open-agent-sdk/sessions`), file of a `sqlite` one. */
  path?: string;
  /** Address of a `pgsql` database: `postgres://user:password@host/name`. */
  url?: string;
  /** In front of the names of tables. Default: `oak_`. */
  tablePrefix?: string;
  /** Tenant under which conversations are kept. Default: `envId`. */
  projectKey?: string;
  /**
   * `'batched'`, the default: what is said while the store writes is written together; `'eager'`: each
   * entry by itself.
   */
  flush?: 'batched' | 'eager';
  /**
   * When an entry counts as stored: `'process'`, the default: it survives the end of the process;
   * `'fsync'`: that of the machine.
   */
  durability?: 'process' | 'fsync';
  /** Milliseconds that a run waits for its entries to be stored. Default: 10,000. */
  storeTimeoutMs?: number;
  /**
   * `'fail'`, the default: a run whose entries cannot be stored ends with `E_STORE_UNAVAILABLE`;
   * `'continue'`: it goes on, and a crash may then lose or repeat things.
   */
  onStoreFailure?: 'fail' | 'continue';
  /** Milliseconds that a send waits for another process to release the session. Default: 20,000. */
  busyTimeoutMs?: number;
}

/** Keeps whole transcripts, such as an older file store. */
export interface TranscriptStore {
  save(sessionId: string, messages: any[], metadata: any): Promise<void>;
  load(sessionId: string): Promise<{ metadata: any; messages: any[] } | null>;
}

/** A call whose outcome is not known. */
export interface UnknownOutcome {
  conversationId: string;
  userId: string;
  toolUseId: string;
  toolName: string;
  input: unknown;
}

/** How much of a conversation is copied; at most one of the two. Default: all of it. */
export interface ForkOptions {
  /** Copies up to the message with this uuid or id, which is copied too. */
  upToMessageId?: string;
  /** Copies this many messages. */
  upToMessageIndex?: number;
}

/** Options of `getHistory`. */
export interface HistoryOptions {
  /** Most records of the page, 1 to 1,000. Default: 100. */
  limit?: number;
  /** `cursor` of a record, or `nextCursor` of a page: goes on before it. */
  cursor?: string;
  /** Begins at the newest record created before this time, in milliseconds since the epoch. */
  before?: number;
  /** Ends before the newest record that was not created after this time. */
  after?: number;
}

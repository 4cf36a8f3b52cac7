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

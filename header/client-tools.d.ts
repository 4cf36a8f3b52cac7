/** The answer to a call of a client tool. */
export interface ToolUseAnswer {
  toolUseId: string;
  /** What the model reads: strings as they are, other values as JSON; nothing as "(no output)". */
  output?: unknown;
  /** Whether the call failed. Default: false. */
  isError?: boolean;
}

/** The answer to questions. */
export interface AskUserAnswer {
  toolUseId: string;
  /**
   * `{answers}`: answers by the text of their question, several as a list. `{answer}` or a text answers
   * the first question, and so does anything else, as JSON.
   */
  answer?: unknown;
}

/** Keeps calls that wait for an answer. Give one as `toolStore`: classes of your own are welcome. */
export interface ClientToolResultStore {
  /** Keeps a record, in the place of the one with its ids. Other fields must be kept too. */
  put(entry: PendingClientToolResult): MaybePromise<unknown>;
  get(key: {
    conversationId: string;
    toolUseId: string;
  }): MaybePromise<PendingClientToolResult | null | undefined>;
  delete(key: { conversationId: string; toolUseId: string }): MaybePromise<unknown>;
  /** Not called: for programs that look for answers by the name of a tool. */
  scanRecent?(query: {
    conversationId: string;
    toolName: string;
  }): MaybePromise<PendingClientToolResult | null>;
}

/** A call that waits for an answer, or has one that the transcript does not have yet. */
export interface PendingClientToolResult {
  conversationId: string;
  toolUseId: string;
  /** Bare. */
  toolName: string;
  toolInput: unknown;
  /** Milliseconds since the epoch. */
  createdAt: number;
  result?: { output: unknown; isError: boolean } | null;
}

/** Keeps calls in the memory of the process. */
export declare class InMemoryClientToolStore implements ClientToolResultStore {
  put(entry: PendingClientToolResult): Promise<void>;
  get(key: { conversationId: string; toolUseId: string }): Promise<PendingClientToolResult | null>;
  delete(key: { conversationId: string; toolUseId: string }): Promise<void>;
  /** The newest record of a tool that has a result. */
  scanRecent(query: {
    conversationId: string;
    toolName: string;
  }): Promise<PendingClientToolResult | null>;
}

/**
 * Functions around a turn; each may be async and may take 30 seconds. One that throws fails the run
 * with a `HookError`, except `onAgentMessage` and `onSessionEnd`, whose failure changes nothing.
 */
export interface AgentHooks {
  /** Before the first run of a session. */
  onSessionStart?(context: SessionContext): unknown;
  /** After `abort()` or `close()` of a session that had a run. */
  onSessionEnd?(context: SessionContext): unknown;
  /** Before a message is stored; `modifiedPrompt` replaces it. */
  onUserMessage?(context: UserMessageContext): MaybePromise<{ modifiedPrompt?: string } | void>;
  /** Before a tool runs, or a call of a client tool begins to wait. */
  onToolStart?(context: ToolStartContext): unknown;
  /** After a tool ran, or its call was answered; `updatedOutput` replaces what the model and the stream see. */
  onToolEnd?(context: ToolEndContext): MaybePromise<{ updatedOutput?: unknown } | void>;
  /** After an answer with text. */
  onAgentMessage?(context: AgentMessageContext): unknown;
}

/** A value, or a promise of one. */
export type MaybePromise<T> = T | Promise<T>;

/** Whose session it is. */
export interface SessionContext {
  conversationId: string;
  userId: string;
  envId: string;
}

/** What the user said. */
export interface UserMessageContext {
  conversationId: string;
  userId: string;
  prompt: string;
}

/** A call that is about to run. */
export interface ToolStartContext extends ToolContext {
  toolName: string;
  input: unknown;
}

/** A call that ran. */
export interface ToolEndContext extends ToolStartContext {
  output: unknown;
  isError: boolean;
}

/** What the model said. */
export interface AgentMessageContext {
  conversationId: string;
  userId: string;
  text: string;
}

/** Version of the package. */
export declare const VERSION: string;

/**
 * Creates an agent. Checks the whole configuration and does no I/O.
 *
 * @throws {InvalidConfigError} a setting has a wrong type, form or value; the message names it
 * @throws {ConfigError} two settings contradict each other
 * @throws {NotImplementedError} a documented setting that does not exist yet
 */
export declare function createAgent<
  F extends StreamFormat = 'acp',
  T extends readonly unknown[] = any[],
>(
  config: Omit<AgentConfig<F>, 'tools'> & {
    /** Tools that run in this process, or that the reader of the stream answers. */
    tools?: { [K in keyof T]: ToolWith<T[K]> };
  },
): Agent<StreamElement<F>>;

/** Formats of the stream. */
export type StreamFormat = 'acp' | 'acp-v1' | 'acp-jsonrpc' | 'events';

/** What a stream in a format consists of. */
export type StreamElement<F extends StreamFormat> = F extends 'acp'
  ? AcpSessionUpdate
  : F extends 'acp-v1'
    ? AcpV1SessionUpdate
    : F extends 'acp-jsonrpc'
      ? AcpStreamMessage
      : SessionEvent;

/** An element with the field names of ACP 1.0 alone: no `input`, `result`, `error`. */
export type AcpV1SessionUpdate = WithoutAliases<
  Exclude<AcpSessionUpdate, { sessionUpdate: 'tool_confirm' }>
>;

type WithoutAliases<E> = E extends { sessionUpdate: 'tool_call' | 'tool_call_update' }
  ? Omit<E, 'input' | 'result' | 'error' | 'parentToolCallId'>
  : E;

/** An element in a JSON-RPC envelope, ready to be written to a stream of server-sent events. */
export type AcpStreamMessage = JsonRpcNotification | JsonRpcRequestMessage;

/** Something that happened. */
export interface JsonRpcNotification {
  jsonrpc: '2.0';
  method: 'session/update';
  params: { sessionId: string; update: AcpV1SessionUpdate };
}

/** A call that waits: answer it with `respondToolUse`, a question with `respondAskUser`. */
export interface JsonRpcRequestMessage {
  jsonrpc: '2.0';
  /** `<session id>:<tool use id>` */
  id: string;
  method: `client/${string}`;
  /** The input of the call; `{value}` when it is no object. */
  params: Record<string, unknown>;
  _meta: {
    sessionId: string;
    toolCallId: string;
    /** The turn this belongs to. */
    assistantMessageId: string;
    oak: { kind: PendingKind; repeated?: true };
  };
}

/** One element of the stream in the format `'events'`. */
export type SessionEvent =
  | SessionEventData
  /** The run failed; `session_idle` follows. */
  | { type: 'error'; error: KernelError };

/**
 * Translates messages of the Claude Agent SDK into JSON-RPC messages of ACP, for programs that call or
 * extend the translator of the TypeScript kernel.
 */
export declare class AcpStreamAdapter implements StreamAdapter<unknown> {
  /** @param options `dedupeAssistantText` (default true): whole texts are left out when streamed */
  constructor(options?: { dedupeAssistantText?: boolean });
  /** Id of the request that asks for a decision about a call. */
  static requestId(sessionId: string, toolCallId: string): string;
  adapt(
    messages: AsyncIterable<SDKMessage>,
    context: StreamAdapterContext,
  ): AsyncGenerator<unknown, void, void>;
}

/** Makes the elements of a stream out of messages of the Claude Agent SDK. */
export interface StreamAdapter<E> {
  adapt(messages: AsyncIterable<SDKMessage>, context: StreamAdapterContext): AsyncIterable<E>;
}

/** What an adapter is told about a run. */
export interface StreamAdapterContext {
  conversationId: string;
  /** Same as `conversationId`. */
  sessionId: string;
  userId: string;
  turnId: string;
}

/** A message of the Claude Agent SDK: `system`, `stream_event`, `assistant`, `user` or `result`. */
export interface SDKMessage {
  type: string;
  session_id: string;
  uuid: string;
  [field: string]: unknown;
}

/** What the kernel tells of its own work: fixed texts, ids, counts, durations and codes. */
export interface LogRecord {
  level: 'debug' | 'info' | 'warn' | 'error';
  /** Part of the kernel that speaks, such as `model`. */
  tag: string;
  message: string;
  fields: Record<string, unknown>;
}

/** Receives log records: a function, or an object with one method a level. */
export type Logger =
  ((record: LogRecord) => void) | { [L in LogRecord['level']]?: (record: LogRecord) => void };

/** One measured value, under the names of the OpenTelemetry GenAI conventions where there is one. */
export interface Metric {
  name: string;
  value: number;
  /** As UCUM writes it: `s`, `{token}`. */
  unit: string;
  attributes: Record<string, unknown>;
}

/** A finished span: a turn, a model request or a tool call. */
export interface SpanRecord {
  /** 32 hex digits. */
  traceId: string;
  /** 16 hex digits. */
  spanId: string;
  parentSpanId: string | null;
  name: string;
  kind: 'internal' | 'client';
  /** Milliseconds since the epoch. */
  startTimeMs: number;
  /** Milliseconds since the epoch. */
  endTimeMs: number;
  /** Names are those of the OpenTelemetry GenAI conventions where there is one. */
  attributes: Record<string, unknown>;
  /** Why it failed: an error code, or `tool_error`. */
  error: string | null;
}

/** Settings of an agent. */
export interface AgentConfig<F extends StreamFormat = 'acp'> {
  /** CloudBase environment id; names the gateway unless `model.apiBaseUrl` is given. */
  envId: string;
  /**
   * Model id, or the model with its settings; a list names fallbacks that take over, after two
   * retries, from a model that is overloaded, limited or out of reach.
   */
  model: ModelInput | ModelInput[];
  /** Alias of `model.apiKey`. */
  apiKey?: string;
  /** Shown as `agent.name`. */
  name?: string;
  /** For your own use. */
  description?: string;
  /** For your own use. */
  metadata?: Record<string, unknown>;
  /** Instructions for the model. Default: none. */
  systemPrompt?: string;
  /** Whether text is streamed as it grows; otherwise each block comes whole. Default: true. */
  stream?: boolean;
  /** Format of the stream. Default: `'acp'`. */
  streamFormat?: F;
  /** Whether the stream shows reasoning and token counts. Default: true. */
  streamExtras?: boolean;
  /** Tools that run in this process, or that the reader of the stream answers. */
  tools?: ToolDefinition<any, any>[];
  /** MCP servers by name; not `sandbox`, `cloudbase` or `custom`, which the kernel uses. */
  mcpServers?: Record<string, McpServerConfig>;
  /**
   * Whether the model has the tool `AskUserQuestion`, whose questions are answered with
   * `respondAskUser`; `{hint: false}` leaves the sentence about it out of the system prompt. Default:
   * false.
   */
  askUser?: boolean | { hint?: boolean };
  /**
   * Where calls that wait for an answer are kept. Default: beside the sessions when their database
   * survives the process, else in the memory of the process.
   */
  toolStore?: ClientToolResultStore;
  /** Functions around a turn. */
  hooks?: AgentHooks;
  /** Makes the elements of the stream, in the place of `streamFormat`. */
  streamAdapter?: StreamAdapter<any>;
  /** Receives log records. Default: none; `OAK_DEBUG=1` writes them to standard error. */
  logger?: Logger;
  /** Receives measured values. Default: none. */
  onMetric?: (metric: Metric) => void;
  /** Receives finished spans. Default: none. */
  telemetry?: ((span: SpanRecord) => void) | { span(span: SpanRecord): void };
  /** Limits of a run and of waiting. */
  limits?: Limits;
  /** Alias of `limits.maxTurns`. */
  maxTurns?: number;
  /** Addresses of services, for those that are not where CloudBase has them. */
  endpoints?: { gateway?: string };
  /** Proxy for all requests but those to this machine; `false`: none. Default: the proxy variables. */
  proxy?: string | false;
  /** Only `'bypassPermissions'`, the default: tools run without a question. */
  permissionMode?: 'bypassPermissions';
  /** Where conversations are kept. Default: each lives as long as its session object. */
  session?: SessionConfig;
  /** The same as `session.store`. */
  sessionStore?: SessionStore | TranscriptStore;
  /** The conversation that `startSession` goes on with when it is given no id. */
  sessionId?: string;
  /** Whether `startSession` without an id goes on with the newest conversation. Default: false. */
  continueRecentSession?: boolean;
  /** Whether that conversation is copied first, once for the agent. Default: false. */
  forkSession?: boolean;
  /** The message, by its uuid or id, behind which that conversation goes on. */
  resumeSessionAt?: string;
  /** Whether `resumeSessionAt` that names no message is an error. Default: false. */
  strictResume?: boolean;
  /** Whether new messages are stored; otherwise stored conversations are only read. Default: true. */
  persistSession?: boolean;
  /**
   * What to do about a call whose process ended before its result was stored. Default: the model is
   * told that the outcome is unknown, and the tool is not run again unless it is `idempotent`.
   *
   * @returns nothing for the default, `'retry'` to run it again, `{result}` if the result is known
   */
  onUnknownOutcome?: (call: UnknownOutcome) => MaybePromise<void | 'retry' | { result: unknown }>;
  /** Only `{enabled: false}`. */
  sandbox?: { enabled: false };
}

/** A model id, or a model with its settings. */
export type ModelInput = string | ModelSpec;

/** A model and how to talk to it. */
export interface ModelSpec {
  /** Model id as the gateway knows it. */
  id: string;
  /** Key of the gateway. Default: `TCB_API_KEY`, else `CLOUDBASE_APIKEY`, read once. */
  apiKey?: string;
  /**
   * Base address of the gateway; `/v1/messages` is appended, or `/chat/completions` with the
   * protocol `'openai'`. Default: `endpoints.gateway`, else the gateway of the environment `envId`.
   */
  apiBaseUrl?: string;
  /** Wire protocol: Anthropic Messages, or OpenAI chat completions. Default: `'anthropic'`. */
  protocol?: 'anthropic' | 'openai';
  /** Most tokens of one answer; lowered by itself when the gateway names a limit. Default: 32,000. */
  maxTokens?: number;
  /** Tokens that fit the model's context. Default: 200,000. */
  contextWindow?: number;
  /** From 0 to 2. Default: the gateway's. */
  temperature?: number;
  /**
   * How often a failed request is repeated before text was shown, at most 1,000: after 0.5 s, doubling
   * to 32 s, or after what `retry-after` asks, up to 60 s; each told to `logger`, at level debug. Default: 10,
   * and 2 for a model that has a fallback.
   */
  maxRetries?: number;
  /**
   * Whether a request that breaks after text was shown is repeated, at most twice. `'auto'`
   * announces it by `agent_phase` with `restart: true`; `'never'` ends the run, and so does the
   * stream format `'events'`, which has no word for it. Default: `'auto'`.
   */
  restart?: 'auto' | 'never';
  /** Whether prompt cache marks are set (protocol `'anthropic'`). Default: true. */
  cacheMarks?: boolean;
  /** The model's reasoning, as the Messages API spells it. Default: not sent. */
  thinking?: Record<string, unknown>;
  /** Further fields of the request body; those that the kernel writes are refused. */
  options?: Record<string, unknown>;
  /** Further headers of the request; those that the kernel writes are refused. */
  headers?: Record<string, string>;
  /** Names of beta features, sent as `anthropic-beta` (protocol `'anthropic'`). */
  betas?: string[];
}

/** Limits of a run and of waiting. Zero means none, except where a range is given. */
export interface Limits {
  /** Model requests in one run. Default: 250. */
  maxTurns?: number;
  /** Tokens of all requests of a run: input, cache and output. Default: none. */
  maxTokensPerTurn?: number;
  /** Milliseconds of a run. Default: none. */
  maxMs?: number;
  /** Cost of a run in the currency of `prices`, which it needs. Default: none. */
  maxCost?: number;
  /** Prices of a million tokens. `cacheRead` and `cacheWrite` default to `input`. */
  prices?: { input: number; output: number; cacheRead?: number; cacheWrite?: number };
  /** Milliseconds until the gateway answers. Default: 120,000. */
  firstByteMs?: number;
  /** Milliseconds between two events of the gateway; pings do not count. Default: 120,000. */
  idleMs?: number;
  /** Milliseconds of waiting in one request. Default: 600,000. */
  requestMs?: number;
  /** Milliseconds of a tool call, for tools without `timeoutMs`. Default: none. */
  toolTimeoutMs?: number;
  /** Read-only tools that run at once, from 1 to 1,000. Default: 10. */
  toolConcurrency?: number;
}

/** A tool that runs in this process, or that the reader of the stream answers. */
export interface ToolDefinition<TInput = Record<string, unknown>, TOutput = unknown> {
  /** 1 to 64 letters, digits, `_` and `-`; not beginning with `mcp__`. */
  name: string;
  /** Tells the model what the tool does and when to use it. */
  description: string;
  /**
   * Schema of the input, which is an object: a schema or a raw shape of zod 3 or 4, a Standard JSON
   * Schema of any library, or a JSON Schema whose references stay inside it.
   */
  parameters: ToolParameters<TInput>;
  /**
   * Runs a call. The input was checked. Strings are shown to the model as they are, other values as
   * `JSON.stringify` writes them, `undefined` and `null` as "(no output)"; a thrown error is told to
   * the model. Beyond 100,000 characters the middle is left out. Without it a call ends the run until
   * `respondToolUse` answers it.
   */
  execute?(input: TInput, ctx: ToolContext): TOutput | Promise<TOutput>;
  /** Whether `respondToolUse` answers the calls, also when there is an `execute`. Default: false. */
  clientSide?: boolean;
  /** Whether calls change nothing: those run in parallel. Default: false. */
  readOnly?: boolean;
  /** Whether running a call again is harmless. Default: false. */
  idempotent?: boolean;
  /** Milliseconds that a call may take; 0: no limit. Default: `limits.toolTimeoutMs`. */
  timeoutMs?: number;
}

/** A tool whose input is known by its schema. */
export type ToolWith<P> = Omit<ToolDefinition<any, any>, 'parameters' | 'execute'> & {
  parameters: P & object;
  execute?(input: InputOf<P>, ctx: ToolContext): unknown;
};

/** What `execute` gets for a schema; a JSON Schema says nothing to TypeScript. */
export type InputOf<P> =
  P extends ZodSchema<infer T>
    ? T
    : P extends Zod3Schema<infer T>
      ? T
      : P extends StandardSchema<infer T>
        ? T
        : P extends Record<string, ZodSchema<any> | Zod3Schema<any>>
          ? { [K in keyof P]: InputOf<P[K]> }
          : any;

/** How the input of a tool can be described; `T` is what `execute` gets. */
export type ToolParameters<T> =
  ZodSchema<T> | Zod3Schema<T> | StandardSchema<T> | ZodShape<T> | JsonSchema;

/** A schema of zod 4 or zod/mini. */
export interface ZodSchema<T> {
  readonly _zod: { readonly output: T };
  readonly '~standard': object;
}

/** A schema of zod 3. */
export interface Zod3Schema<T> {
  readonly _def: object;
  readonly _output: T;
  safeParseAsync(data: unknown): Promise<unknown>;
}

/** Zod types by the names of the properties, all of the same zod. */
export type ZodShape<T> = { readonly [K in keyof T]: ZodSchema<T[K]> | Zod3Schema<T[K]> };

/** A Standard JSON Schema, of arktype for one; valibot has `toStandardJsonSchema` for it. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly output: T } | undefined;
    readonly jsonSchema: {
      readonly input: (options: {
        target: 'draft-07' | 'draft-2020-12';
      }) => Record<string, unknown>;
    };
  };
}

/** A JSON Schema, which says nothing to TypeScript: the input is what `execute` takes it for. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What a tool call may know and watch. */
export interface ToolContext {
  toolUseId: string;
  conversationId: string;
  userId: string;
  envId: string;
  /** The same for every attempt at this call. */
  idempotencyKey: string;
  /** Aborts when the run stops or the call's time is over. */
  signal: AbortSignal;
}

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

/** Why a run ended; a reason of the gateway that the kernel does not know is passed on as it is. */
export type StopReason =
  | 'end_turn'
  | 'max_turns'
  | 'max_tokens'
  | 'budget'
  | 'refusal'
  | 'awaiting_permission'
  | 'awaiting_client_tool'
  | 'aborted'
  | 'error'
  | (string & {});

/** One configuration, many sessions. */
export interface Agent<E = AcpSessionUpdate> {
  /** Random id of this object. */
  readonly id: string;
  readonly name: string | undefined;
  /** The stored conversations. */
  readonly sessions: Sessions;
  /**
   * Starts a conversation, or goes on with the one that `conversationId` names.
   *
   * @throws {InvalidConfigError} a wrong user or conversation id
   * @throws {SessionError} `E_SESSION_OWNER`: the conversation belongs to another user;
   *   `E_SESSION_CLOSED`: the agent is closed
   */
  startSession(options: SessionStartOptions): Promise<Session<E>>;
  /**
   * Goes on with a stored conversation, or one that a live session of this agent holds. Its user is
   * the stored one; `'resumed'` when none is stored and none is given.
   *
   * @param reference conversation id, or the text of `getState()`
   * @throws {ResourceError} there is none
   * @throws {SessionError} `E_SESSION_OWNER`: it belongs to another user than the given one
   */
  resumeSession(reference: string, options?: ResumeOptions): Promise<Session<E>>;
  /**
   * One message to the end, in a session of its own unless `conversationId` is given. Rejects with
   * the error of the run; an abort resolves with `stopReason: 'aborted'`.
   */
  prompt(input: SessionInput, options?: AgentPromptOptions): Promise<PromptResult>;
  /**
   * Stops every run, ends every session and refuses new ones.
   *
   * @throws {SessionStoreError} `E_STORE_UNAVAILABLE`: entries are not stored
   */
  close(options?: {
    /** Milliseconds to wait; clean-up then goes on by itself. Default: no limit. */
    deadlineMs?: number;
  }): Promise<void>;
}

/** Options of `startSession`. */
export interface SessionStartOptions {
  /** 1 to 512 bytes without control characters. */
  userId: string;
  /** 1 to 512 bytes without control characters. Default: a random UUID. */
  conversationId?: string;
  /** At most 4,096 bytes. Default: that of an earlier start. */
  title?: string;
  /** At most 256 KiB of JSON. Default: that of an earlier start. */
  metadata?: Record<string, unknown>;
  /** Whether a conversation of another user passes to this one. Default: false. */
  allowUserChange?: boolean;
  /** Without `conversationId`: goes on with the newest conversation of the user. Default: false. */
  continueRecent?: boolean;
  /** Works on a copy of a stored conversation, under `conversationId` or a random id. */
  fork?: ForkOptions & {
    /** Id of the conversation to copy. */
    from: string;
  };
  /** Goes on behind the message with this uuid or id; what came after it stays stored. */
  resumeAt?: string;
}

/** Options of `resumeSession`. */
export interface ResumeOptions {
  /** The user; must be the stored one. Default: the stored one. */
  userId?: string;
  /** Whether the conversation passes to another user. Default: false. */
  allowUserChange?: boolean;
}

/** Options of `agent.prompt`. */
export interface AgentPromptOptions extends PromptOptions {
  /** Default: `'default'`. */
  userId?: string;
  /**
   * Goes on with a live session of this agent that has this id; without one the conversation is new.
   * What the call opened it closes.
   */
  conversationId?: string;
}

/** A message: text, or an object with text; or the answer to a call, as for `respondToolUse`. */
export type SessionInput =
  string | { type: 'message'; content: string } | ({ type: 'tool_result' } & ToolUseAnswer);

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

/** Options of `send`. */
export interface SendOptions extends PromptOptions {
  /** Whether the iterator rejects with the error of the run after `idle`. Default: false. */
  throwOnError?: boolean;
}

/** Options of one run. */
export interface PromptOptions {
  /** Stops the run. */
  signal?: AbortSignal;
  /** Model of this run. An id alone keeps the other settings of the agent's model. */
  model?: ModelInput | ModelInput[];
  /** The trace that this run joins: a `traceparent` header of W3C trace context. */
  traceparent?: string;
  /** `maxTokens` of this run. */
  maxTokens?: number;
  /** Limits of this run, in the place of those of the agent that they name. */
  limits?: Limits;
}

/** One conversation of one user; one run at a time. */
export interface Session<E = AcpSessionUpdate> {
  /** Conversation id. */
  readonly id: string;
  readonly userId: string;
  /**
   * Sends a message and streams what the agent does. Nothing starts before the first `next()`.
   * Leaving the loop stops the run. The last element is `agent_phase` `idle`, exactly once.
   *
   * The first `next()` rejects for wrong input (`InvalidConfigError`), for a session with a run in
   * progress (`E_SESSION_BUSY`) and for a closed one (`E_SESSION_CLOSED`). Everything that goes
   * wrong later is a `log` element of level `error`, then `idle` with `stopReason: 'error'`.
   */
  send(input: SessionInput, options?: SendOptions): AsyncGenerator<E, void, void>;
  /**
   * Answers a call that waits and streams how the turn goes on. Waits for a run in progress, here or in
   * another process. Calls that wait still are told once more (`repeated`), then the run ends with
   * `awaiting_client_tool`; otherwise the model goes on.
   *
   * A call that was answered is told as a `log` element with the code `E_ALREADY_RESOLVED`, an id that
   * nobody waits for with `E_RESOURCE`; then `idle` with `stopReason: 'error'`.
   */
  respondToolUse(answer: ToolUseAnswer, options?: SendOptions): AsyncGenerator<E, void, void>;
  /** The same for questions of `AskUserQuestion`. */
  respondAskUser(answer: AskUserAnswer, options?: SendOptions): AsyncGenerator<E, void, void>;
  /** Sends a message and waits for the end. Rejects with the error of the run. */
  prompt(input: SessionInput, options?: PromptOptions): Promise<PromptResult>;
  /** Stops the run in progress, if any, and waits until it is over. The session stays usable. */
  abort(reason?: unknown): Promise<void>;
  /**
   * Stops the run in progress, if any, refuses further messages, and waits until every entry is in the
   * store.
   *
   * @throws {SessionStoreError} `E_STORE_UNAVAILABLE`: entries are not stored
   */
  close(): Promise<void>;
  /** Waits until no run is in progress and all clean-up is done. */
  settled(): Promise<void>;
  /**
   * What was said, oldest first: the newest records, or those before a cursor. Each record has a
   * `cursor`; `nextCursor` is null at the beginning of the history. Pages neither repeat nor lose
   * records, whatever is said meanwhile.
   */
  getHistory(options?: HistoryOptions): Promise<Page<MessageRecord>>;
  /** Hides what was said so far from `getHistory`, for ever. The model still knows it. */
  clearHistory(): Promise<void>;
  /**
   * Waits until every entry is in the store.
   *
   * @throws {SessionStoreError} `E_STORE_UNAVAILABLE`; `details.unsaved` has the uuids of the entries
   *   that are not, which stay to be offered again
   */
  flush(): Promise<void>;
  /** Text that names this session, for `resumeSession`. */
  getState(): Promise<string>;
}

/** What `prompt` resolves to. */
export interface PromptResult {
  /** Text of the last answer; that of its parts when it was continued. */
  text: string;
  conversationId: string;
  stopReason: StopReason;
  /** Sum over the requests of the run. */
  usage: UsageTotals;
  /** Model requests of the run. */
  numTurns: number;
  /** Calls that wait for an answer, in the order of the model. */
  pending: PendingCall[];
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

/** Base of every error that the kernel raises itself. */
export declare class KernelError extends Error {
  constructor(code: string, message: string, cause?: unknown);
  /** Stable code, see docs/errors.md. */
  readonly code: string;
  /** Whether the same call may succeed later without a change. */
  readonly retryable: boolean;
  /** HTTP status of the gateway. */
  readonly status?: number;
  /** The gateway's id of the request. */
  readonly requestId?: string;
  /** More about the error, such as `attempts`. */
  readonly details?: Record<string, unknown>;
}

/** A configuration value or an argument has a wrong type, form or value. */
export declare class InvalidConfigError extends KernelError {
  constructor(message: string, cause?: unknown);
}

/** Two configuration values contradict each other. */
export declare class ConfigError extends KernelError {
  constructor(message: string, cause?: unknown);
}

/** A documented option or method that does not exist yet. */
export declare class NotImplementedError extends KernelError {
  constructor(feature: string);
}

/** Something that the call needs does not exist. */
export declare class ResourceError extends KernelError {
  constructor(message: string, cause?: unknown);
}

/** An attachment or a stored object cannot be read or written. */
export declare class StorageError extends KernelError {
  constructor(message: string, cause?: unknown);
}

/** A sandbox cannot be used. */
export declare class SandboxError extends KernelError {
  constructor(message: string, cause?: unknown);
}

/** The rules of a sandbox refuse a path or a command. */
export declare class SandboxDeniedError extends SandboxError {
  constructor(tool: string, reason: string, cause?: unknown);
  /** The tool that is refused: `Bash`, `Read`, `Write`. */
  readonly tool: string;
  /** Why; `details.code` names the kind, such as `command_denied` or `unparseable`. */
  readonly reason: string;
}

/** The session cannot take the call: it is busy, closed, or another user's. */
export declare class SessionError extends KernelError {}

/** A session store cannot do what it was asked. */
export declare class SessionStoreError extends KernelError {
  /** The session that a call of `FileSessionStore` was about. */
  readonly sessionId?: string;
}

/** The model gateway failed; `status`, `requestId` and `retryable` say how. */
export declare class ModelError extends KernelError {}

/** A hook failed, or did not settle in time. */
export declare class HookError extends KernelError {}

/** A server of the Model Context Protocol cannot be used; the run goes on without its tools. */
export declare class McpError extends KernelError {}

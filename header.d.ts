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

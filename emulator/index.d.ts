/**
 * Local gateway with a scripted model, for offline development and for tests.
 *
 * @packageDocumentation
 */

/** Options of {@link startEmulator}. */
export interface EmulatorOptions {
  /** Port to listen on. Default 0: a free one. */
  port?: number;
  /** Address to listen on; `0.0.0.0` or `::` for all. Default `127.0.0.1`. */
  host?: string;
  /** Script of the model. Default {@link defaultRules}. */
  rules?: Rule[];
  /** Network behaviour of every answer. */
  knobs?: Knobs;
  /** Key that clients must send; `null` switches the check off. Default `emulator-key`. */
  apiKey?: string | null;
  /** Environment id that the hub reports. Default `emulator-env`. */
  envId?: string;
  /** Whether {@link Emulator.requests} is filled. Default true; switch off for benchmarks. */
  recordRequests?: boolean;
  /** False: invalid requests are recorded in `violations` but answered. Default true. */
  validate?: boolean;
}

/** A running emulator. */
export interface Emulator {
  /** Root address, value for `OAK_EMULATOR_HUB`; the loopback one when listening on all addresses. */
  readonly url: string;
  /** Whether it listens on all addresses of the machine. */
  readonly everywhere: boolean;
  /**
   * Base URL for `model.apiBaseUrl`; below it are the Messages endpoint `/v1/messages` and the chat
   * completions endpoint `/chat/completions`.
   */
  readonly gatewayUrl: string;
  readonly apiKey: string | null;
  readonly envId: string;
  /** Requests to the gateway, in order of arrival. */
  readonly requests: RecordedRequest[];
  /** Requests that were refused as invalid, or that no rule matched. */
  readonly violations: RecordedViolation[];
  /** Number of open connections, idle ones included. */
  openSockets(): number;
  /** Number of streamed answers that are not finished. */
  openStreams(): number;
  /** Replaces the script; use counts start again. `null` brings back the rules of the start. */
  setRules(rules: Rule[] | null): void;
  /** Replaces the knobs (no merging). */
  setKnobs(knobs: Knobs): void;
  /** Forgets requests, violations and use counts; brings back rules and knobs of the start. */
  reset(): void;
  /** Resolves when no request is in flight. */
  idle(): Promise<void>;
  /** Ends all connections and stops listening. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One request to the gateway. */
export interface RecordedRequest {
  /** Value of the `request-id` header of the answer. */
  id: string;
  method: string;
  /** Path with query string. */
  path: string;
  headers: Record<string, string | string[] | undefined>;
  /** Decoded JSON; the raw text when it is not JSON. */
  body: any;
  /** Time of arrival, milliseconds since 1970. */
  at: number;
  /** Time when the answer was complete or the connection closed. */
  endedAt?: number;
  /** HTTP status, once headers were sent. */
  status?: number;
  /** Whether the client went away before it had the whole answer. */
  aborted: boolean;
  /** Index of the rule that answered. */
  rule?: number;
  violation?: Violation;
}

/** A broken rule of the validator, or `no-rule` / `script-error`. */
export interface Violation {
  rule: string;
  message: string;
}

export interface RecordedViolation extends Violation {
  /** Id of the request, see {@link RecordedRequest.id}. */
  id: string;
  path: string;
  at: number;
}

/** A text condition: contained string (equal for names), RegExp, or a RegExp written in JSON. */
export type TextCondition = string | RegExp | { regex: string; flags?: string };

/** What a rule looks at. All given conditions must hold. */
export interface Condition {
  /** Text of the last user message that has text (so still the question during a tool loop). */
  user?: TextCondition;
  /** Text of the tool results in the last message. */
  toolResult?: TextCondition;
  /** Name of a tool whose result is in the last message; a string must be equal. */
  tool?: TextCondition;
  /** Whether the last message has tool results. */
  hasToolResult?: boolean;
  /** System text. */
  system?: TextCondition;
  /** Model name; a string must be equal. */
  model?: TextCondition;
  /** Name of a tool that the request offers; a string must be equal. */
  offersTool?: TextCondition;
  /** Number of assistant messages in the request: 0 for the first request of a conversation. */
  turn?: number;
}

/** Facts about a request, given to functions in rules. */
export interface Facts {
  user: string;
  toolResult: string;
  hasToolResult: boolean;
  /** Always false at the chat endpoint, whose results have no mark for it. */
  toolFailed: boolean;
  tool: string;
  tools: string[];
  system: string;
  model: string;
  turn: number;
  offered: string[];
}

/** Second argument of a reply function. */
export interface ReplyContext extends Facts {
  /** How often the rule was used before. */
  use: number;
  headers: Record<string, string | string[] | undefined>;
  /** Fires when the client goes away. */
  signal: AbortSignal;
}

/** `request` is in the form of the Messages API, whichever endpoint was asked. */
export type ReplyFunction = (
  request: any,
  context: ReplyContext,
) => string | ReplyObject | Promise<string | ReplyObject>;

/** One step of the script. The first rule that matches answers. */
export interface Rule {
  /** For the reader only. */
  name?: string;
  /** A function gets the request in the form of the Messages API, whichever endpoint was asked. */
  when?: Condition | ((request: any, facts: Facts) => boolean);
  /** The rule is used at most this many times. */
  times?: number;
  /** An array is a sequence over successive uses; its last entry repeats. */
  reply?: string | ReplyObject | ReplyFunction | (string | ReplyObject | ReplyFunction)[];
  /** Network behaviour of this rule; wins over the knobs of the emulator. */
  knobs?: Knobs;
}

export interface Usage {
  input_tokens?: number | null;
  output_tokens?: number | null;
  cache_read_input_tokens?: number | null;
  cache_creation_input_tokens?: number | null;
}

export interface ScriptedCall {
  id?: string;
  name: string;
  input?: Record<string, unknown>;
  /** JSON text of the input, sent as it is (may be broken). */
  raw?: string;
  /** Number of deltas of the input (default 2, the first one empty), or their exact texts. */
  fragments?: number | string[];
}

/** What the model answers. */
export interface ReplyObject {
  thinking?: string;
  /** Default: a hash of the thinking text. `null`: none is sent. The chat endpoint has none. */
  signature?: string | null;
  /** An array gives the exact deltas. */
  text?: string | string[];
  /** Repeats the text this many times. */
  repeat?: number;
  toolCalls?: ScriptedCall[];
  /** Mixes the fragments of the calls over their block indexes. */
  interleave?: boolean;
  /** Raw content blocks instead of the fields above. */
  blocks?: Record<string, any>[];
  stopReason?: string | null;
  stopSequence?: string | null;
  /** Usage in `message_delta`; `null` leaves a field out. */
  usage?: Usage;
  /** Usage in `message_start`; `null` leaves a field out. The chat endpoint has none. */
  startUsage?: Usage;
  id?: string;
  model?: string;
  /** 400 or above: an HTTP failure instead of an answer. */
  status?: number;
  error?: { type?: string; message?: string; code?: string };
  headers?: Record<string, string>;
  /** Body of the failure, sent as it is. */
  body?: string;
  /** Network behaviour of this reply; wins over the knobs of the rule. */
  knobs?: Knobs;
}

/** Network behaviour. Event counts count the events of the answer, not pings and the like. */
export interface Knobs {
  /** Wait before the headers. */
  latencyMs?: number | null;
  /** Wait before the first delta. */
  firstDeltaMs?: number | null;
  /** Wait between events. */
  chunkDelayMs?: number | null;
  /** Characters of a text delta. Default 12; a code point is never cut. */
  textChunk?: number | null;
  /** Writes the body in pieces of this many bytes. */
  splitBytes?: number | null;
  /** Cuts the body at these byte offsets. */
  splitAt?: number[] | null;
  /** Wait between pieces. */
  splitDelayMs?: number | null;
  /** Ends lines with CR LF. */
  crlf?: boolean | null;
  /** Sends a comment after each event. */
  comments?: boolean | null;
  /** Sends a ping (chat: a comment) after every n events. */
  pings?: number | null;
  /** Leaves the `event:` lines out; the chat endpoint has none. */
  noEventLine?: boolean | null;
  /** Inserts an unknown event and unknown delta types. */
  unknownEvents?: boolean | null;
  /** Holds the stream open without a byte after n events. */
  stallAfter?: number | null;
  /** During a stall, sends a ping every n milliseconds. */
  stallPings?: number | null;
  /** Closes the socket after n events. */
  resetAfter?: number | null;
  /** Ends the body properly after n events. */
  truncateAfter?: number | null;
  /** Ends the body properly after n bytes. */
  truncateBytes?: number | null;
  /** Sends an SSE error event after n events, then ends. */
  errorAfter?: {
    events: number;
    error?: { type?: string; message?: string; code?: string };
  } | null;
  /** Sends errors in the form of the other endpoint's protocol: gateways mix them. */
  foreignErrors?: boolean | null;
  /** Inserts an event with broken JSON after n events. */
  invalidJsonAfter?: number | null;
  /** Leaves `message_stop` (chat: `[DONE]`) out. */
  noMessageStop?: boolean | null;
  /** After the first event, sends one `data:` line of about n bytes without an end. */
  hugeLine?: number | null;
  /** HTTP status; 400 or above is a failure. */
  status?: number | null;
  /** Error of a failure. */
  error?: { type?: string; message?: string; code?: string } | null;
  /** Additional response headers. */
  headers?: Record<string, string> | null;
  /** Answers a streaming request with one JSON message. */
  json?: boolean | null;
  /** Answers 200 with an HTML page. */
  html?: boolean | null;
  /** Never sends headers. */
  hangHeaders?: boolean | null;
  /** Closes the connection before any byte of the answer. */
  dropConnection?: boolean | null;
}

/**
 * Starts an emulator. Rejects with a `TypeError` or `RangeError` that names the option when one is
 * unknown or has a bad value.
 */
export function startEmulator(options?: EmulatorOptions): Promise<Emulator>;

/** The script that runs when none is given. */
export const defaultRules: Rule[];

/** Names of the rules of {@link validateRequest}, in order of checking. */
export const validatorRules: readonly string[];

/** Checks the body of a Messages request; `null` when it is valid. */
export function validateRequest(body: unknown): Violation | null;

/** Names of the rules of {@link validateChatRequest}, in order of checking. */
export const chatValidatorRules: readonly string[];

/** Checks the body of a chat completions request; `null` when it is valid. */
export function validateChatRequest(body: unknown): Violation | null;

/** A text answer. */
export function text(value: string | string[], more?: ReplyObject): ReplyObject;

/** An answer that thinks and then speaks. */
export function thinking(
  thought: string,
  value: string | string[],
  more?: ReplyObject,
): ReplyObject;

/** An answer with one tool call. */
export function toolCall(
  name: string,
  input?: Record<string, unknown>,
  more?: ReplyObject & Pick<ScriptedCall, 'raw' | 'fragments'>,
): ReplyObject;

/** An answer with several tool calls. */
export function toolCalls(calls: ScriptedCall[], more?: ReplyObject): ReplyObject;

/** An HTTP failure. */
export function httpError(
  status: number,
  error?: { type?: string; message?: string; code?: string },
  headers?: Record<string, string>,
): ReplyObject;

/** Reads the SSE events of a response of the emulator, without the closing `[DONE]` of a chat. */
export function readEvents(response: Response): AsyncGenerator<any>;

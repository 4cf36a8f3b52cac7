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

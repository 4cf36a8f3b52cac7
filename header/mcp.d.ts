/** An MCP server, whose tools the model sees as `mcp__<key>__<tool>`. */
export type McpServerConfig =
  McpStdioServerConfig | McpHttpServerConfig | McpSSEServerConfig | McpSdkServerConfig;

/** What all servers can be told. */
export interface McpServerSettings {
  /**
   * Milliseconds that a call may take; progress does not extend it, values below 1,000 are ignored.
   * Default: 60,000.
   */
  timeout?: number;
  /** What may be done with single tools. Default: all may be called. */
  tools?: McpServerToolPolicy[];
  /**
   * Whether the first request of a run waits until the server is there or has failed, up to 30
   * seconds in the place of 5; for server objects it always does. Default: false.
   */
  alwaysLoad?: boolean;
  /**
   * Whether what the server says of its tools, such as `readOnlyHint`, counts for more than running
   * them in parallel: for permission, and for running a call again that a crash lost. Default: false.
   */
  trusted?: boolean;
}

/** A program that speaks over its standard input and output. */
export interface McpStdioServerConfig extends McpServerSettings {
  type?: 'stdio';
  command: string;
  args?: string[];
  /** Variables beside the few of this process that every child gets, such as `PATH`. */
  env?: Record<string, string>;
  /** Working directory. Default: that of this process. */
  cwd?: string;
  /**
   * Milliseconds after which a program that no run needs is ended; it is started again when it is
   * needed. 0: never. Default: 300,000.
   */
  idleMs?: number;
}

/** A server behind an address (streamable HTTP). */
export interface McpHttpServerConfig extends McpServerSettings {
  type: 'http';
  url: string;
  /** Sent to the origin of `url` only. */
  headers?: Record<string, string>;
}

/** A server behind an address, in the older form. */
export interface McpSSEServerConfig extends McpServerSettings {
  type: 'sse';
  url: string;
  /** Sent to the origin of `url` only. */
  headers?: Record<string, string>;
}

/** A server in this process, such as `createSdkMcpServer` makes. */
export interface McpSdkServerConfig extends McpServerSettings {
  type: 'sdk';
  /** For your own use: the server is called by its key. */
  name: string;
  /** Connected once, whatever number of agents and sessions use it, and released with the last. */
  instance: McpServerInstance;
}

/**
 * A server object: an `McpServer` of `@modelcontextprotocol/sdk`, of the Claude Agent SDK or of this
 * package. It serves one transport at a time.
 */
export interface McpServerInstance {
  /** Rejects when the server is connected already. */
  connect(transport: any): Promise<void>;
  /** Ends the conversation; the server can be connected again. */
  close(): Promise<void>;
}

/** What may be done with a tool of a server. */
export interface McpServerToolPolicy {
  /** The server's own name of the tool. */
  name: string;
  /** `'always_deny'` hides it from the model. Default: `'always_allow'`. */
  permission_policy?: 'always_allow' | 'always_ask' | 'always_deny';
}

/**
 * Creates an MCP server in this process, for `mcpServers` or for any transport of the MCP SDK.
 *
 * @throws {InvalidConfigError} an option or a tool has a wrong form; the message names it
 */
export declare function createSdkMcpServer(options: {
  name: string;
  /** Default: `'1.0.0'`. */
  version?: string;
  /** Told to the model. */
  instructions?: string;
  /** Default: the server offers no tools at all. */
  tools?: SdkMcpTool<any>[];
  /** Whether clients are told to show all tools always. Default: false. */
  alwaysLoad?: boolean;
  /** Milliseconds that a call may take. Default: 60,000. */
  timeout?: number;
}): McpSdkServerConfig;

/** Describes a tool for `createSdkMcpServer`. */
export declare function tool<S extends object>(
  name: string,
  description: string,
  /** A raw shape of zod 3 or 4, `{}` for none, or any other schema that `ToolDefinition` takes. */
  inputSchema: S,
  /**
   * Runs a call. `args` are parsed: defaults applied, coercions done. What it throws is told to the
   * model.
   */
  handler: (args: InputOf<S>, extra: SdkMcpToolExtra) => MaybePromise<McpToolResult>,
  extras?: {
    annotations?: McpToolAnnotations;
    searchHint?: string;
    alwaysLoad?: boolean;
  },
): SdkMcpTool<S>;

/** What `tool` gives. */
export interface SdkMcpTool<S extends object = any> {
  name: string;
  description: string;
  inputSchema: S;
  handler: (args: InputOf<S>, extra: any) => MaybePromise<McpToolResult>;
  annotations?: McpToolAnnotations;
  _meta?: Record<string, unknown>;
}

/** What a server says of a tool. */
export interface McpToolAnnotations {
  title?: string;
  /** Whether calls change nothing. */
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

/** What a call of a server in this process may know and do. */
export interface SdkMcpToolExtra {
  /** Aborts when the call is cancelled; its result is then for nobody. */
  signal: AbortSignal;
  requestId: string | number;
  /** What the client sent beside the arguments. */
  _meta?: { progressToken?: string | number; [key: string]: unknown };
  sessionId?: string;
  /** Tells the client something, such as `notifications/progress` with the token of `_meta`. */
  sendNotification(notification: { method: string; params?: any }): Promise<void>;
  /** Asks the client; `resultSchema` is one of zod. Agents of this package only answer `ping`. */
  sendRequest(
    request: { method: string; params?: any },
    resultSchema?: any,
    options?: { signal?: AbortSignal; timeout?: number },
  ): Promise<any>;
  /** Of transports that know who asks. */
  authInfo?: any;
  requestInfo?: any;
}

/** What a call gave. */
export interface McpToolResult {
  content?: McpContent[];
  /** Whether the call failed in a way that the model can mend. */
  isError?: boolean;
  structuredContent?: Record<string, unknown>;
  _meta?: Record<string, unknown>;
  [key: string]: unknown;
}

/** A part of a result. */
export type McpContent =
  | { type: 'text'; text: string; [key: string]: unknown }
  | { type: 'image' | 'audio'; data: string; mimeType: string; [key: string]: unknown }
  | { type: 'resource'; resource: McpResourceContents; [key: string]: unknown }
  | { type: 'resource_link'; uri: string; name: string; [key: string]: unknown };

/** A text or, base64-encoded, bytes. */
export type McpResourceContents =
  | { uri: string; mimeType?: string; text: string; [key: string]: unknown }
  | { uri: string; mimeType?: string; blob: string; [key: string]: unknown };

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

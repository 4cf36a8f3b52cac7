/**
 * The error classes, and how the core makes instances of them.
 *
 * @module
 */
import { native } from './native.js';
import { thrownUnder } from './thrown.js';

/** Base of every error that the kernel raises itself. */
export class KernelError extends Error {
  /**
   * @param {string} code stable code, see docs/errors.md
   * @param {string} message
   * @param {unknown} [cause]
   */
  constructor(code, message, cause) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryable = false;
  }
}

/** A configuration value or an argument has a wrong type, form or value. */
export class InvalidConfigError extends KernelError {
  constructor(message, cause) {
    super('E_INVALID_CONFIG', message, cause);
  }
}

/** Two configuration values contradict each other. */
export class ConfigError extends KernelError {
  constructor(message, cause) {
    super('E_CONFIG', message, cause);
  }
}

/** A documented option or method that does not exist yet. */
export class NotImplementedError extends KernelError {
  constructor(feature) {
    super('E_NOT_IMPLEMENTED', `${feature} is not built yet in this version`);
  }
}

/** Something that the call needs does not exist. */
export class ResourceError extends KernelError {
  constructor(message, cause) {
    super('E_RESOURCE', message, cause);
  }
}

/** An attachment or a stored object cannot be read or written. */
export class StorageError extends KernelError {
  constructor(message, cause) {
    super('E_STORAGE', message, cause);
  }
}

/** A sandbox cannot be used. */
export class SandboxError extends KernelError {
  constructor(message, cause) {
    super('E_SANDBOX', message, cause);
  }
}

/** The rules of a sandbox refuse a path or a command. */
export class SandboxDeniedError extends SandboxError {
  /**
   * @param {string} tool the tool that is refused: `Bash`, `Read`, `Write`
   * @param {string} reason
   * @param {unknown} [cause]
   */
  constructor(tool, reason, cause) {
    super(`Permission denied for ${tool}: ${reason}`, cause);
    this.code = 'E_SANDBOX_DENIED';
    this.details = { tool, reason };
  }

  /** The tool that is refused. */
  get tool() {
    return this.details.tool;
  }

  /** Why; `details.code` names the kind. */
  get reason() {
    return this.details.reason;
  }
}

/** The session cannot take the call: it is busy, closed, or another user's. */
export class SessionError extends KernelError {}

/** A session store cannot do what it was asked. */
export class SessionStoreError extends KernelError {}

/** The model gateway failed; `status`, `requestId` and `retryable` say how. */
export class ModelError extends KernelError {}

/** A hook failed, or did not settle in time. */
export class HookError extends KernelError {}

/** A server of the Model Context Protocol cannot be used; the run goes on without its tools. */
export class McpError extends KernelError {}

const classes = {
  KernelError,
  InvalidConfigError,
  ConfigError,
  NotImplementedError,
  ResourceError,
  StorageError,
  SandboxError,
  SandboxDeniedError,
  SessionError,
  SessionStoreError,
  ModelError,
  HookError,
  McpError,
};

// As on the classes of the language: writable, and not shown as a field.
for (const [name, { prototype }] of Object.entries(classes)) {
  Object.defineProperty(prototype, 'name', { value: name, writable: true, configurable: true });
}

/**
 * Makes the error that the core describes.
 *
 * @param {{ class: string, code: string, message: string, retryable: boolean, status: number | null,
 *   requestId: string | null, details: object, thrown: number | null }} description
 * @returns {KernelError}
 */
export function errorFromCore(description) {
  const { class: name, code, message, retryable, status, requestId, details, thrown } = description;
  const error = new KernelError(code, message, thrownUnder(thrown)?.value);
  Object.setPrototypeOf(error, classes[name].prototype);
  error.retryable = retryable;
  if (status !== null) error.status = status;
  if (requestId !== null) error.requestId = requestId;
  if (Object.keys(details).length > 0) error.details = details;
  return error;
}

/**
 * Does something with a value of the user, which may throw anything when it is touched.
 *
 * @template T
 * @param {string} path name of the value
 * @param {() => T} work
 * @returns {T}
 */
export function typed(path, work) {
  try {
    return work();
  } catch (error) {
    if (error instanceof KernelError) throw error;
    throw new InvalidConfigError(`${path} cannot be read`, error);
  }
}

/**
 * Waits for the core; an error of it gets the stack of the caller, which it cannot know.
 *
 * @template T
 * @param {Promise<T>} promise
 * @returns {Promise<T>}
 */
export async function traced(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error instanceof KernelError) Error.captureStackTrace(error, traced);
    throw error;
  }
}

native.setErrorFactory((text) => errorFromCore(JSON.parse(text)));

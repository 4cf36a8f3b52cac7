/**
 * The entry of the package: what users import, and nothing else.
 *
 * @module
 */
import { native } from './js/native.js';

export { AcpStreamAdapter } from './js/acp-stream-adapter.js';
export { createAgent } from './js/agent.js';
export {
  ConfigError,
  HookError,
  InvalidConfigError,
  KernelError,
  ModelError,
  NotImplementedError,
  ResourceError,
  SandboxError,
  SessionError,
  SessionStoreError,
  StorageError,
} from './js/errors.js';

/** Version of the package. */
export const VERSION = native.version();

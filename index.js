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
  McpError,
  ModelError,
  NotImplementedError,
  ResourceError,
  SandboxDeniedError,
  SandboxError,
  SessionError,
  SessionStoreError,
  StorageError,
} from './js/errors.js';
export { createSdkMcpServer, tool } from './js/mcp/sdk.js';
export { InMemoryClientToolStore } from './js/in-memory-client-tool-store.js';
export { SandboxChecker, SandboxPathNormalizer } from './js/sandbox/checker.js';
export { CloudBaseSessionStore } from './js/session-store/cloudbase-session-store.js';
export { FileSessionStore, createFileSessionStore } from './js/session-store/file.js';
export { InMemoryDriver } from './js/session-store/in-memory-driver.js';
export { encodeSessionKey } from './js/session-store/key.js';
export { openSessionStore } from './js/session-store/open.js';
export { toSessionMessage } from './js/session-store/session-message.js';

/** Version of the package. */
export const VERSION = native.version();

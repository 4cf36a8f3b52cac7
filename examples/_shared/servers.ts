/** MCP servers of others that examples use. */
import type { McpStdioServerConfig } from '@cloudbase/open-agent-kernel';

/**
 * The reference server of the protocol. `npx` fetches it; on a machine without network
 * `EVERYTHING_SERVER` names its main file.
 */
export function everythingServer(): McpStdioServerConfig {
  const file = process.env.EVERYTHING_SERVER;
  return file
    ? { type: 'stdio', command: process.execPath, args: [file, 'stdio'] }
    : { type: 'stdio', command: 'npx', args: ['-y', '@modelcontextprotocol/server-everything'] };
}

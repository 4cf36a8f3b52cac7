/**
 * `@anthropic-ai/claude-agent-sdk`: the engine before this kernel, one child process for each send.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

import { MODEL } from '../floor.js';

/**
 * @param {{ gatewayUrl: string, apiKey: string, peer: import('./prepare.js').Prepared }} gateway
 * @returns {Promise<import('../tasks.js').Client>}
 */
export async function open({ gatewayUrl, apiKey, peer: { modules, program } }) {
  const { query } = await import(modules['@anthropic-ai/claude-agent-sdk']);
  const running = new Set();
  const options = {
    model: MODEL.id,
    tools: [],
    settingSources: [],
    strictMcpConfig: true,
    permissionMode: 'bypassPermissions',
    allowDangerouslySkipPermissions: true,
    includePartialMessages: true,
    persistSession: false,
    cwd: program.home,
    env: {
      PATH: process.env.PATH,
      HOME: program.home,
      TMPDIR: program.home,
      CLAUDE_CONFIG_DIR: program.home,
      ANTHROPIC_BASE_URL: gatewayUrl,
      ANTHROPIC_AUTH_TOKEN: apiKey,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    },
    pathToClaudeCodeExecutable: program.file,
    spawnClaudeCodeProcess({ command, args, cwd, env, signal }) {
      const stdio = ['pipe', 'pipe', 'ignore'];
      const child = spawn(command, args, { cwd, env, signal, stdio, ...program.user });
      const exited = once(child, 'exit').finally(() => running.delete(exited));
      running.add(exited);
      return child;
    },
  };
  return {
    conversation: async () => ({
      async send(prompt, { onText }) {
        for await (const { type, event } of query({ prompt, options })) {
          if (type !== 'stream_event' || event.delta?.type !== 'text_delta') continue;
          onText(event.delta.text);
        }
      },
    }),
    settled: () => Promise.all(running),
  };
}

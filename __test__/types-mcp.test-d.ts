/** Type tests of MCP servers: this file only has to compile. */
import { createAgent, createSdkMcpServer, tool } from '@cloudbase/open-agent-kernel';
import type {
  McpServerConfig,
  McpToolResult,
  SdkMcpTool,
  SdkMcpToolExtra,
} from '@cloudbase/open-agent-kernel';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTrue = <T extends true>(): T | undefined => undefined;
const done: McpToolResult = { content: [{ type: 'text', text: 'done' }] };

const add = tool(
  'add',
  'Adds',
  { a: z.number(), b: z.number().default(1) },
  async (args, extra) => {
    isTrue<Equal<typeof args, { a: number; b: number }>>();
    isTrue<Equal<typeof extra, SdkMcpToolExtra>>();
    await extra.sendNotification({ method: 'notifications/progress', params: { progress: 1 } });
    return { content: [{ type: 'text', text: `${args.a + args.b} ${extra.signal.aborted}` }] };
  },
);
const three = tool('three', '', { a: z3.string().transform(Number) }, (args) => {
  isTrue<Equal<typeof args, { a: number }>>();
  return { structuredContent: { a: args.a }, isError: false };
});
const none = tool('none', '', {}, async () => done, { annotations: { readOnlyHint: true } });
const whole = tool('whole', '', z.object({ a: z.string() }), async ({ a }) => ({
  content: [{ type: 'image', data: a, mimeType: 'image/png' }],
}));
const small = tool('small', '', { a: mini.optional(mini.string()) }, async ({ a }) => {
  isTrue<Equal<typeof a, string | undefined>>();
  return done;
});
const json = tool('json', '', { type: 'object' }, async ({ a }) => a.b.c);
// @ts-expect-error a result has content of known kinds
tool('bad', '', {}, async () => ({ content: [{ type: 'text', words: 'x' }] }));
// @ts-expect-error the shape gives a number
tool('bad', '', { a: z.number() }, async ({ a }) => ({ content: [{ type: 'text', text: a }] }));
// @ts-expect-error a tool needs a handler
tool('bad', '', {});
/** As the Claude Agent SDK types it. */
const foreign: {
  name: string;
  description: string;
  inputSchema: { a: z.ZodString };
  handler: (args: { a: string }, extra: unknown) => Promise<{ content: [] }>;
} = { ...add, inputSchema: { a: z.string() }, handler: async () => ({ content: [] }) };
const tools: SdkMcpTool[] = [add, three, none, whole, small, json, foreign];

const calculator = createSdkMcpServer({ name: 'calculator', version: '1.0.0', tools });
// @ts-expect-error a server has a name
createSdkMcpServer({ tools });

const servers: Record<string, McpServerConfig> = {
  calculator,
  trusted: { ...calculator, trusted: true, tools: [{ name: 'add' }] },
  files: { command: 'node', args: ['server.js'], env: { A: 'b' }, idleMs: 60_000 },
  docs: { type: 'http', url: 'https://example.com/mcp', headers: { a: 'b' }, timeout: 5_000 },
  old: { type: 'sse', url: 'https://example.com/sse', alwaysLoad: true },
  denied: {
    type: 'stdio',
    command: 'x',
    tools: [{ name: 'rm', permission_policy: 'always_deny' }],
  },
};
createAgent({ envId: 'env', model: 'glm', mcpServers: servers });
createAgent({ envId: 'env', model: 'glm', mcpServers: { calculator } });
createAgent({
  envId: 'env',
  model: 'glm',
  mcpServers: {
    // @ts-expect-error a server object can be connected
    bad: { type: 'sdk', name: 'x', instance: {} },
  },
});
// @ts-expect-error an address needs a url
createAgent({ envId: 'env', model: 'glm', mcpServers: { bad: { type: 'http' } } });

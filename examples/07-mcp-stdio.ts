/**
 * 07 MCP server as a program of its own: the agent starts it, talks to it over standard input and
 * output, and ends it.
 *
 *   npm run examples 07
 */
import assert from 'node:assert/strict';

import { createAgent } from '@cloudbase/open-agent-kernel';

import { showAnswer } from './_shared/answers.ts';
import { loadEnv } from './_shared/env.ts';
import { everythingScript } from './_shared/scripts.ts';
import { everythingServer } from './_shared/servers.ts';

const env = await loadEnv(everythingScript);
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: '你会用 everything 服务器的工具完成任务。',
  mcpServers: { everything: everythingServer() },
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'mcp' });

const question = '用工具算出 17 加 25，再用 echo 工具说 "hello mcp"。';
console.log(`you    ${question}`);
const { text, calls } = await showAnswer(session.send(question));

const given = JSON.stringify(calls.map(({ result }) => result));
assert.ok(calls.some(({ name }) => name === 'mcp__everything__echo'));
assert.match(given, /42/);
assert.match(given, /hello mcp/);
assert.match(text, /42/);

await agent.close();
await env.close();

/**
 * 06 MCP server in the program: tools that live in this process and speak MCP, so that any client of
 * the protocol could use them too.
 *
 *   npm run examples 06
 */
import assert from 'node:assert/strict';

import { createAgent, createSdkMcpServer, tool } from '@cloudbase/open-agent-kernel';
import { z } from 'zod';

import { showAnswer } from './_shared/answers.ts';
import { loadEnv } from './_shared/env.ts';
import { calculatorScript } from './_shared/scripts.ts';

const numbers = { a: z.number().describe('First number'), b: z.number().describe('Second number') };
const says = (value: number) => ({ content: [{ type: 'text' as const, text: String(value) }] });

const calculator = createSdkMcpServer({
  name: 'calculator',
  version: '1.0.0',
  tools: [
    tool('add', 'Adds two numbers.', numbers, async ({ a, b }) => says(a + b)),
    tool('multiply', 'Multiplies two numbers.', numbers, async ({ a, b }) => says(a * b)),
  ],
});

const env = await loadEnv(calculatorScript);
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: '你会用计算器工具做每一步计算，不要心算。',
  mcpServers: { calculator },
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'mcp' });

const question = '23 乘以 47，再加上 100，是多少？';
console.log(`you    ${question}`);
const { text, calls } = await showAnswer(session.send(question));

const names = calls.map(({ name }) => name);
assert.ok(names.includes('mcp__calculator__multiply'), names.join());
assert.ok(names.includes('mcp__calculator__add'), names.join());
assert.match(text, /1,?181/);

await agent.close();
await env.close();

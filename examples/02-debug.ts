/**
 * 02 Debug: what happens inside a turn. Prints the options, then every element of the stream beside
 * what the kernel tells of its own work. Texts, inputs and results are shown by their size alone.
 *
 *   npm run examples 02
 */
import { createAgent, type AcpSessionUpdate } from '@cloudbase/open-agent-kernel';
import { z } from 'zod';

import { loadEnv } from './_shared/env.ts';
import { printingObservers } from './_shared/observers.ts';

const start = performance.now();

function print(kind: string, line: string) {
  const ms = (performance.now() - start).toFixed(0).padStart(6);
  console.log(`${ms} ms  ${kind.padEnd(6)}  ${line}`);
}

/** An element of the stream in a line, without what was said. */
function describe(update: AcpSessionUpdate): string {
  const { sessionUpdate: kind } = update;
  switch (kind) {
    case 'agent_message_chunk':
    case 'agent_thought_chunk':
      return `${kind} ${update.content.text.length} characters`;
    case 'tool_call':
      return `${kind} ${update.title} ${update.status}`;
    case 'tool_call_update':
      return `${kind} ${update.status} ${sizeOf(update.result ?? update.input)} characters of JSON`;
    case 'usage_update':
      return `${kind} ${update.used} of ${update.size} tokens`;
    case 'log':
      return `${kind} ${update.level} ${update.code ?? ''}`.trim();
    case 'agent_phase':
      return [kind, update.phase, update.toolName, update.stopReason].filter(Boolean).join(' ');
    default:
      return kind;
  }
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}

const env = await loadEnv();
const getWeather = {
  name: 'get_weather',
  description: 'Gives the current weather in a city.',
  parameters: z.object({ city: z.string().describe('Name of the city') }),
  execute: async ({ city }: { city: string }) => ({ city, condition: 'sunny', temperature: 22 }),
};
const agent = createAgent({
  ...printingObservers(print),
  envId: env.envId,
  name: 'debug',
  model: env.model,
  systemPrompt: 'You are a helpful assistant. Answer in one or two sentences.',
  tools: [getWeather],
  limits: { maxTurns: 10 },
});

console.log(`answers come from ${env.source}`);
console.log(
  [
    'options',
    `  model     ${env.model.id}`,
    `  key       ${env.model.apiKey ? 'given' : 'from the environment'}`,
    `  format    acp`,
    `  tools     ${getWeather.name}`,
    `  limits    maxTurns 10`,
  ].join('\n'),
);

const session = await agent.startSession({ userId: 'debug' });
const messages = ['What is the weather in Beijing?', 'Think about the best time for a walk.'];
let failed = false;

for (const [at, message] of messages.entries()) {
  console.log(`\nmessage ${at + 1} of ${messages.length}, ${message.length} characters`);
  for await (const update of session.send(message)) {
    print('stream', describe(update));
    if (update.sessionUpdate === 'log' && update.level === 'error') failed = true;
  }
}

await agent.close();
await env.close();
process.exitCode = failed ? 1 : 0;

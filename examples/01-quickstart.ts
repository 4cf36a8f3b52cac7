/**
 * 01 Quickstart: a conversation in which the model calls a tool, streamed to the terminal.
 *
 *   npm run quickstart
 */
import { createAgent } from '@cloudbase/open-agent-kernel';
import { z } from 'zod';

import { loadEnv } from './_shared/env.ts';

const env = await loadEnv();
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: 'You are a helpful assistant. Answer in one or two sentences.',
  tools: [
    {
      name: 'get_weather',
      description: 'Gives the current weather in a city.',
      parameters: z.object({ city: z.string().describe('Name of the city') }),
      execute: async ({ city }) => ({ city, condition: 'sunny', temperature: 22 }),
    },
  ],
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'quickstart' });
let failed = false;

for (const message of ['My name is Ming.', 'What is the weather in Beijing?', 'What is my name?']) {
  console.log(`you    ${message}`);
  process.stdout.write('agent  ');
  for await (const update of session.send(message)) {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
        process.stdout.write(update.content.text);
        break;
      case 'tool_call_update':
        if (update.status === 'in_progress') {
          console.log(`\n       calls get_weather(${JSON.stringify(update.input)})`);
        } else {
          console.log(`       ${update.status}: ${JSON.stringify(update.result)}`);
          process.stdout.write('       ');
        }
        break;
      case 'log':
        if (update.level === 'error') {
          failed = true;
          console.error(`\n${update.name} ${update.code}: ${update.message}`);
        }
        break;
      case 'agent_phase':
        if (update.phase === 'idle') console.log(`\n       (${update.stopReason})\n`);
        break;
    }
  }
}

await agent.close();
await env.close();
process.exitCode = failed ? 1 : 0;

/**
 * 16b History of a client tool, live: the model calls a tool that runs at the client, the agent pauses,
 * the result is sent back, and the history shows one call with its result.
 *
 *   npm run examples 16b
 */
import { CloudBaseSessionStore, InMemoryDriver, createAgent } from '@cloudbase/open-agent-kernel';

import {
  hasNoNotice,
  hasNoOrphans,
  hasNoSentinel,
  hasPairs,
  partsOf,
  runChecks,
  showRecords,
} from './_shared/checks.ts';
import { askClient, getWeather } from './_shared/client-tool.ts';
import { loadEnv } from './_shared/env.ts';

const env = await loadEnv();
const store = new CloudBaseSessionStore({ driver: new InMemoryDriver(), projectKey: 'weather' });
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: 'Use the tool get_weather for questions about the weather, once.',
  tools: [getWeather],
  session: { store, projectKey: 'weather' },
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'browser' });
await askClient(session, 'What is the weather in Beijing?');

const records = await session.getHistory({ limit: 50 });
showRecords(records);

const parts = partsOf(records);
const calls = parts.filter((part) => part.type === 'tool_call');
const weather = calls.filter(({ toolName }) => toolName === 'get_weather');
const results = parts.filter((part) => part.type === 'tool_result');
runChecks({
  'nothing of a pause shows': hasNoSentinel(records),
  'nothing shows that the user did not say': hasNoNotice(records),
  'no record of the user has results alone': hasNoOrphans(records),
  'the call shows under the name of the tool': weather.length > 0,
  'a result tells of Beijing': JSON.stringify(results).includes('Beijing'),
  'call and result are in one record': results.length > 0 && hasPairs(records),
  'there is one call only': weather.length === 1,
});

await agent.close();
await env.close();

/**
 * 17b Session store, looked into: what a database keeps of a conversation with a client tool, and what
 * of it the history shows.
 *
 *   npm run examples 17b
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createAgent, openSessionStore } from '@cloudbase/open-agent-kernel';

import { SENTINEL, hasNoSentinel, partsOf, runChecks, showRecords } from './_shared/checks.ts';
import { askClient, getWeather } from './_shared/client-tool.ts';
import { loadEnv } from './_shared/env.ts';

const env = await loadEnv();
const folder = await mkdtemp(join(tmpdir(), 'oak-example-17b-'));
const database = { database: 'sqlite' as const, path: join(folder, 'sessions.db') };
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: 'Use the tool get_weather for questions about the weather, once.',
  tools: [getWeather],
  session: database,
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'browser' });
await askClient(session, 'What is the weather in Beijing?');
const records = await session.getHistory();
await agent.close();

const store = openSessionStore(database);
const entries = (await store.load({ projectKey: env.envId, sessionId: session.id })) ?? [];
const sentinels = entries.filter((entry) => JSON.stringify(entry).includes(SENTINEL));
for (const { type, uuid } of entries) console.log(`${type} ${uuid}`);
showRecords(records);
console.log(`entries in the store:    ${entries.length}`);
console.log(`records in the history:  ${records.length}`);
console.log(`sentinels in the store:  ${sentinels.length}`);

runChecks({
  'the store keeps what the history shows': entries.length >= records.length,
  'the history has records': records.length > 0,
  'the history has the result': partsOf(records).some(({ type }) => type === 'tool_result'),
  'the history shows no pause': hasNoSentinel(records),
  'the store keeps a pause at most once': sentinels.length <= 1,
});

await rm(folder, { recursive: true });
await env.close();

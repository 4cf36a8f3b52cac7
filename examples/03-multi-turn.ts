/**
 * 03 Multi-turn: a conversation that is kept in the memory of the process, by a driver that the
 * program can look into.
 *
 *   npm run examples 03
 */
import assert from 'node:assert/strict';

import { CloudBaseSessionStore, InMemoryDriver, createAgent } from '@cloudbase/open-agent-kernel';

import { ask } from './_shared/answers.ts';
import { loadEnv } from './_shared/env.ts';

const env = await loadEnv();
const driver = new InMemoryDriver();
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: '你是一个友好的助手，用一两句话回答。',
  session: { store: new CloudBaseSessionStore({ driver }) },
});

console.log(`answers come from ${env.source}\n`);
const session = await agent.startSession({ userId: 'xiaoming' });

await ask(session, '你好，我叫小明，我最喜欢吃番茄炒蛋。');
const answer = await ask(session, '我叫什么名字？我最喜欢吃什么？');
assert.match(answer, /小明/);
assert.match(answer, /番茄炒蛋/);

const projectKeys = driver.listProjectKeys();
const entries = await driver.countEntries({ projectKey: projectKeys[0], sessionId: session.id });
console.log(`project keys: ${projectKeys.join(', ')}; entries: ${entries}`);
assert.deepEqual(projectKeys, [env.envId]);
assert.ok(entries >= 4);

await agent.close();
await env.close();

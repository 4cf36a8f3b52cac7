/**
 * 04 Multi-turn with a database: a conversation that outlives its process. The first process tells
 * something, the second one goes on with the conversation and asks.
 *
 *   npm run examples 04
 *
 * Needs no credentials: the conversation is kept in an SQLite file.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { createAgent } from '@cloudbase/open-agent-kernel';

import { ask } from './_shared/answers.ts';
import { loadEnv } from './_shared/env.ts';

const env = await loadEnv();
const agent = createAgent({
  envId: env.envId,
  model: env.model,
  systemPrompt: '你是一个友好的助手，用一两句话回答。',
  session: {
    database: 'sqlite',
    path: join(tmpdir(), 'oak-example-04', 'sessions.db'),
  },
});

const [conversationId] = process.argv.slice(2);
if (conversationId) {
  const session = await agent.resumeSession(conversationId);
  console.log(`process ${process.pid} goes on with ${session.id} of ${session.userId}\n`);
  const answer = await ask(session, '我叫什么名字？我最喜欢吃什么？');
  assert.match(answer, /小明/);
  assert.match(answer, /番茄炒蛋/);
  const history = await session.getHistory();
  console.log(`the history has ${history.length} records`);
  assert.equal(history.length, 4);
} else {
  console.log(`answers come from ${env.source}\n`);
  const session = await agent.startSession({ userId: 'xiaoming', title: '自我介绍' });
  console.log(`process ${process.pid} starts ${session.id}\n`);
  await ask(session, '你好，我叫小明，我最喜欢吃番茄炒蛋。');
  await agent.close();
  process.exitCode = goOn(session.id);
}

await agent.close();
await env.close();

/** Goes on with the conversation in another process. */
function goOn(id: string): number {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), id];
  const { status } = spawnSync(process.execPath, args, { stdio: 'inherit' });
  return status ?? 1;
}

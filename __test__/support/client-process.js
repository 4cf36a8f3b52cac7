/**
 * A process that answers a call of a stored conversation and prints what its stream told, one element a
 * line: `node client-process.js '{config, conversationId, prompt?, answers, tools}'`.
 *
 * @module
 */
import { writeSync } from 'node:fs';

import { createAgent } from '../../index.js';
import { clientTool } from './client-tools.js';

const { config, conversationId, prompt, answers = [], tools } = JSON.parse(process.argv[2]);

const agent = createAgent({ ...config, tools: tools.map((name) => clientTool(name)) });
const session = await agent.startSession({ userId: 'ann', conversationId });

async function print(stream) {
  // Before the process may be killed: the pipe keeps it.
  for await (const element of stream) writeSync(1, `${JSON.stringify(element)}\n`);
}

if (prompt) await print(session.send(prompt));
for (const answer of answers) await print(session.respondToolUse(answer));
await agent.close();

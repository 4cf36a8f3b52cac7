/**
 * The process that is killed: runs one turn of one conversation and ends. Tells on its standard output
 * how far it came, one JSON text a line.
 *
 * @module
 */
import { writeSync } from 'node:fs';

import { createAgent } from '../dist/index.js';
import { recordExecution } from './executions.js';
import { PROMPT, PROMPT_OF_RESUME, TOOLS, resultOf } from './turn-model.js';

/** How long a tool works: long enough to be killed in the middle. */
const WORK_MS = 4;

const { gateway, apiKey, session, conversation, executions, resume } = JSON.parse(process.argv[2]);

function tell(event) {
  // A pipe is written to at once: what was told is not lost with the process.
  writeSync(1, `${JSON.stringify(event)}\n`);
}

function tool([name, { readOnly }]) {
  return {
    name,
    description: name,
    parameters: { type: 'object' },
    readOnly,
    async execute(_, { toolUseId }) {
      recordExecution(executions, { call: toolUseId, tool: name });
      await new Promise((resolve) => setTimeout(resolve, WORK_MS));
      return resultOf(name, toolUseId);
    },
  };
}

function newAgent() {
  return createAgent({
    envId: 'crash',
    systemPrompt: `This is ${conversation}.`,
    model: { id: 'glm', apiBaseUrl: gateway, apiKey, maxRetries: 0 },
    session,
    tools: Object.entries(TOOLS).map(tool),
  });
}

async function open(agent) {
  if (resume) {
    try {
      return await agent.resumeSession(conversation);
    } catch (error) {
      if (error.code !== 'E_RESOURCE') throw error;
      // Its process was killed before anything of it was stored; whether that is right is judged.
      tell({ event: 'nothing' });
    }
  }
  return agent.startSession({ userId: 'ann', conversationId: conversation });
}

async function runTurn(session) {
  for await (const element of session.send(resume ? PROMPT_OF_RESUME : PROMPT)) {
    if (element.sessionUpdate === 'agent_phase' && element.phase === 'idle') {
      tell({ event: 'idle', stopReason: element.stopReason });
    } else if (element.sessionUpdate === 'log' && element.level === 'error') {
      tell({ event: 'log', code: element.code, message: element.message });
    }
  }
}

try {
  const agent = newAgent();
  tell({ event: 'ready' });
  await runTurn(await open(agent));
  tell({ event: 'ended' });
  await agent.close();
  tell({ event: 'closed' });
} catch (error) {
  tell({ event: 'threw', code: error.code, message: error.message });
  process.exitCode = 1;
}

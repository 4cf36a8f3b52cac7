/**
 * A process that has a session: runs one turn whose tool waits until it is told to go on. Tells on its
 * standard output how far it came and obeys words on its standard input.
 *
 * @module
 */
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { createAgent } from '../../index.js';

const { config, conversationId, prompt } = JSON.parse(process.argv[2]);

const tell = (event) => writeSync(1, `${JSON.stringify(event)}\n`);

let finish;
const finished = new Promise((resolve) => (finish = resolve));

const hold = {
  name: 'hold',
  description: 'waits',
  parameters: { type: 'object' },
  async execute() {
    tell({ event: 'tool' });
    // Does not listen to its signal: an unfriendly tool.
    return finished;
  },
};

const agent = createAgent({ ...config, tools: [hold] });

const words = {
  finish: () => finish('late result'),
  close: async () => {
    await agent.close({ deadlineMs: 500 });
    // The process goes on: only the lease is given back.
    tell({ event: 'closed' });
  },
  again: () => turn('again'),
};
createInterface({ input: process.stdin }).on('line', (word) => words[word]());

const session = await agent.startSession({ userId: 'ann', conversationId });

async function turn(text) {
  for await (const element of session.send(text)) {
    const { sessionUpdate, phase, level, code, stopReason } = element;
    if (sessionUpdate === 'log' && level === 'error') tell({ event: 'error', code });
    if (sessionUpdate === 'agent_phase' && phase === 'idle') tell({ event: 'idle', stopReason });
  }
}

await turn(prompt);

/** FC-C3: many processes on one database. */
import assert from 'node:assert/strict';

import { openSessionStore } from '../index.js';
import { ENTRY, configFor, runModule } from './support/boundary.js';
import { stored, storedAgents } from './support/sessions.js';

const PROCESSES = 8;
const TURNS = 25;

stored('FC-C3: eight processes run turns at once, none is lost', async (t, settings) => {
  const { emulator } = await storedAgents(t, settings);
  const config = { ...configFor(emulator), session: settings };
  const program = (id) => `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const agent = createAgent(${JSON.stringify(config)});
    const session = await agent.startSession({ userId: 'u', conversationId: ${JSON.stringify(id)} });
    for (let turn = 0; turn < ${TURNS}; turn += 1) await session.prompt('turn ' + turn);
    await agent.close();
  `;
  const ids = Array.from({ length: PROCESSES }, (_, at) => `c${at}`);
  const ends = await Promise.all(ids.map((id) => runModule(program(id))));
  for (const { code, err } of ends) assert.deepEqual({ code, err }, { code: 0, err: '' });
  const store = openSessionStore(settings);
  for (const sessionId of ids) {
    const entries = await store.load({ projectKey: 'test-env', sessionId });
    const prompts = entries.filter(({ type }) => type === 'user');
    assert.deepEqual(
      prompts.map(({ message }) => message.content),
      Array.from({ length: TURNS }, (_, turn) => `turn ${turn}`),
    );
    assert.equal(entries.length, 2 * TURNS);
  }
  assert.equal((await store.listSessions('test-env')).length, PROCESSES);
});

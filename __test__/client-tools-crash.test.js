/** Processes that are killed between any two steps of a call that waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ANSWERS, allPoints } from '../crash/points.js';
import { assertEnd, collect, configFor } from './support/boundary.js';
import {
  NOT_PENDING,
  RESOLVED,
  answer,
  assertError,
  callsThenRepeats,
  clientTool,
  inProcess,
  openIn,
} from './support/client-tools.js';
import { resultsIn } from './support/gateway.js';
import { stored, storedAgents } from './support/sessions.js';

/** What a kill while the call is opened leaves. */
const OPENING = {
  'answer.open.begun': 'nothing',
  'answer.open.stored': 'a call that waits',
};
const ANSWERING = ['answer.claimed', 'answer.appended', 'answer.durable', 'answer.removed'];

test('every point has its test', () => {
  const points = allPoints().filter((name) => name.startsWith(`${ANSWERS}.`));
  assert.deepEqual(points, [...ANSWERING, ...Object.keys(OPENING)].sort());
});

async function setUp(t, settings) {
  const { emulator, newAgent } = await storedAgents(t, settings, {
    rules: callsThenRepeats('a', 'b'),
    tools: ['a', 'b'].map((name) => clientTool(name)),
  });
  const input = {
    config: { ...configFor(emulator), session: settings },
    conversationId: 'c',
    tools: ['a', 'b'],
  };
  return {
    emulator,
    newAgent,
    run: (more) => inProcess({ ...input, ...more }),
    async killedAt(point, more) {
      const { signal, elements } = await inProcess({ ...input, ...more }, { OAK_CRASH: point });
      assert.equal(signal, 'SIGKILL', `${point} was not passed`);
      return elements;
    },
    results: () => resultsIn(emulator.requests.at(-1).body.messages.at(-1)),
  };
}

const open = (agent) => agent.startSession({ userId: 'ann', conversationId: 'c' });

for (const [point, left] of Object.entries(OPENING)) {
  stored(`a kill at ${point} of the second call leaves ${left}`, async (t, settings) => {
    const { killedAt, newAgent, results } = await setUp(t, settings);
    const told = await killedAt(`${point}:2`, { prompt: 'go' });
    assert.deepEqual(openIn(told), [], 'nobody was told before both were written');
    const agent = newAgent();
    const session = await open(agent);
    const waits = left !== 'nothing';
    const elements = await answer(session, 'toolu_1', 'one');
    assertEnd(elements, { stopReason: waits ? 'awaiting_client_tool' : 'end_turn' });
    if (waits) assertEnd(await answer(session, 'toolu_2', 'two'), { stopReason: 'end_turn' });
    else assertError(await answer(session, 'toolu_2', 'two'), 'E_RESOURCE', NOT_PENDING);
    const [one, two] = results();
    assert.deepEqual(one, ['toolu_1', 'one', false]);
    assert.match(two[1], waits ? /^two$/ : /never delivered/);
    assert.equal((await agent.sessions.get('c')).status, 'idle');
  });
}

for (const point of ANSWERING) {
  stored(`a kill at ${point} is finished by the next answer`, async (t, settings) => {
    const { run, killedAt, newAgent, results } = await setUp(t, settings);
    await run({ prompt: 'go' });
    const one = { toolUseId: 'toolu_1', output: 'one' };
    await killedAt(`${point}:1`, { answers: [one] });
    const agent = newAgent();
    const session = await open(agent);
    assertError(await answer(session, 'toolu_1', 'other'), 'E_ALREADY_RESOLVED', RESOLVED);
    assert.equal((await agent.sessions.get('c')).status, 'requires_action');
    assertEnd(await answer(session, 'toolu_2', 'two'), { stopReason: 'end_turn' });
    assert.deepEqual(results(), [
      ['toolu_1', 'one', false],
      ['toolu_2', 'two', false],
    ]);
    assert.equal((await agent.sessions.get('c')).status, 'idle');
  });

  stored(`a kill at ${point} is finished by the next message`, async (t, settings) => {
    const { run, killedAt, newAgent, results } = await setUp(t, settings);
    await run({ prompt: 'go' });
    await killedAt(`${point}:1`, { answers: [{ toolUseId: 'toolu_1', output: 'one' }] });
    const agent = newAgent();
    const session = await open(agent);
    assertEnd(await collect(session.send('go on')), { stopReason: 'end_turn' });
    const [one, two] = results();
    assert.deepEqual(one, ['toolu_1', 'one', false]);
    assert.match(two[1], /superseded/);
    assert.equal((await agent.sessions.get('c')).status, 'idle');
  });
}

/** Calls that wait, over processes: restarts, answers from elsewhere, races. */
import assert from 'node:assert/strict';

import { ResourceError } from '../index.js';
import { assertEnd, collect, configFor, errorOf } from './support/boundary.js';
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
import { endsOf } from './support/gateway-elements.js';
import { resultsIn } from './support/gateway.js';
import { stored, storedAgents } from './support/sessions.js';

/** Agents over a database whose model calls each tool once. */
async function pausing(t, settings, tools, options = {}) {
  const { emulator, newAgent } = await storedAgents(t, settings, {
    rules: callsThenRepeats(...tools),
    tools: tools.map((name) => clientTool(name)),
    ...options,
  });
  const config = { ...configFor(emulator), session: settings };
  const conversation = { userId: 'ann', conversationId: 'c' };
  return {
    emulator,
    newAgent,
    open: (agent) => agent.startSession(conversation),
    elsewhere: (input, env) => inProcess({ config, conversationId: 'c', tools, ...input }, env),
    results: () => resultsIn(emulator.requests.at(-1).body.messages.at(-1)),
  };
}

stored('FC-D1: a call that waits survives a restart', async (t, settings) => {
  const { elsewhere, emulator, results } = await pausing(t, settings, ['pick']);
  const first = await elsewhere({ prompt: 'go' });
  assertEnd(first.elements, { stopReason: 'awaiting_client_tool' });
  const answers = [{ toolUseId: 'toolu_1', output: { a: 1 } }];
  const second = await elsewhere({ answers });
  assertEnd(second.elements, { stopReason: 'end_turn' });
  assert.deepEqual(endsOf(second.elements), [['toolu_1', 'completed', { a: 1 }]]);
  assert.deepEqual(results(), [['toolu_1', '{"a":1}', false]]);
  const third = await elsewhere({ answers });
  assertError(third.elements, 'E_ALREADY_RESOLVED', RESOLVED);
  assert.equal(emulator.requests.length, 2);
});

stored('another process answers while the first one is still there', async (t, settings) => {
  const { newAgent, open, elsewhere, emulator, results } = await pausing(t, settings, ['a', 'b']);
  const session = await open(newAgent());
  assertEnd(await collect(session.send('go')), { stopReason: 'awaiting_client_tool' });
  const other = await elsewhere({ answers: [{ toolUseId: 'toolu_2', output: 'two' }] });
  assertEnd(other.elements, { stopReason: 'awaiting_client_tool' });
  assert.deepEqual(openIn(other.elements), [['toolu_1', 'a', true]]);
  assertError(await answer(session, 'toolu_2', 'late'), 'E_ALREADY_RESOLVED', RESOLVED);
  assertEnd(await answer(session, 'toolu_1', 'one'), { stopReason: 'end_turn' });
  assert.deepEqual(results(), [
    ['toolu_1', 'one', false],
    ['toolu_2', 'two', false],
  ]);
  assert.equal(emulator.requests.length, 2);
});

stored('answers of two processes and two agents at once: one wins', async (t, settings) => {
  const { newAgent, open, elsewhere, emulator, results } = await pausing(t, settings, ['pick']);
  const sessions = await Promise.all([open(newAgent()), open(newAgent())]);
  await collect(sessions[0].send('go'));
  const reply = (at) => ({ toolUseId: 'toolu_1', output: `answer ${at}` });
  const streams = await Promise.all([
    ...[0, 1].map(async (at) => (await elsewhere({ answers: [reply(at)] })).elements),
    ...Array.from({ length: 10 }, (_, at) => {
      return collect(sessions[at % 2].respondToolUse(reply(at + 2)));
    }),
  ]);
  const won = streams.filter((elements) => elements.at(-1).stopReason === 'end_turn');
  assert.equal(won.length, 1);
  for (const elements of streams) {
    if (elements !== won[0]) assertError(elements, 'E_ALREADY_RESOLVED', RESOLVED);
  }
  assert.equal(emulator.requests.length, 2);
  assert.equal(endsOf(won[0])[0][2], results()[0][1]);
});

stored('a message in one agent supersedes what another opened', async (t, settings) => {
  const { newAgent, open, results } = await pausing(t, settings, ['pick'], {
    rules: [{ when: { user: 'other' }, reply: 'Fine.' }, ...callsThenRepeats('pick')],
  });
  const [one, two] = await Promise.all([open(newAgent()), open(newAgent())]);
  await collect(one.send('go'));
  assertEnd(await collect(two.send('other')), { stopReason: 'end_turn' });
  assert.match(results()[0][1], /superseded/);
  assertError(await answer(one, 'toolu_1', 'late'), 'E_RESOURCE', NOT_PENDING);
  const parts = (await one.getHistory()).flatMap((record) => record.parts);
  assert.deepEqual(
    parts.map(({ type }) => type),
    ['text', 'tool_call', 'tool_result', 'text', 'text'],
  );
});

stored('a session that waits requires action until it is answered', async (t, settings) => {
  const { newAgent, open } = await pausing(t, settings, ['pick']);
  const [agent, other] = [newAgent(), newAgent()];
  const session = await open(agent);
  const quiet = await agent.startSession({ userId: 'ann', conversationId: 'quiet' });
  await quiet.flush();
  await collect(session.send('go'));
  const statuses = async () => {
    const list = await other.sessions.list();
    return Object.fromEntries(list.map(({ conversationId, status }) => [conversationId, status]));
  };
  assert.equal((await statuses()).c, 'requires_action');
  assert.equal((await other.sessions.get('c')).status, 'requires_action');
  const [record] = (await (await other.resumeSession('c')).getHistory()).slice(-1);
  assert.equal(record.parts[0].status, 'awaiting_approval');
  await answer(session, 'toolu_1', 'x');
  assert.equal((await statuses()).c, 'idle');
  assert.equal((await other.sessions.get('c')).status, 'idle');
});

stored('a deleted session leaves no call behind', async (t, settings) => {
  const { newAgent, open } = await pausing(t, settings, ['pick']);
  const agent = newAgent();
  await collect((await open(agent)).send('go'));
  await agent.sessions.delete('c');
  const again = await open(agent);
  assertError(await answer(again, 'toolu_1', 'x'), 'E_RESOURCE', NOT_PENDING);
  assertEnd(await collect(again.send('go')), { stopReason: 'awaiting_client_tool' });
  assertEnd(await answer(again, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

stored(
  'a copy has no open calls; its next message says that they were not run',
  async (t, settings) => {
    const { newAgent, open, results, emulator } = await pausing(t, settings, ['pick']);
    const agent = newAgent();
    const session = await open(agent);
    await collect(session.send('go'));
    const copy = await agent.resumeSession(await agent.sessions.fork('c'));
    assertError(await answer(copy, 'toolu_1', 'x'), 'E_RESOURCE', NOT_PENDING);
    assertEnd(await collect(copy.send('go on')), { stopReason: 'end_turn' });
    assert.match(results()[0][1], /never delivered/);
    assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
    assert.equal(emulator.requests.length, 3);
  },
);

stored('a hidden history changes nothing for a call that waits', async (t, settings) => {
  const { newAgent, open } = await pausing(t, settings, ['pick']);
  const session = await open(newAgent());
  await collect(session.send('go'));
  await session.clearHistory();
  assert.deepEqual([...(await session.getHistory())], []);
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

stored('going on behind an earlier message leaves the call behind', async (t, settings) => {
  const { emulator, newAgent } = await pausing(t, settings, ['pick'], {
    rules: [
      { when: { user: 'hi' }, reply: { text: 'Hello.', id: 'msg_hello' } },
      ...callsThenRepeats('pick'),
    ],
  });
  const first = newAgent();
  const session = await first.startSession({ userId: 'ann', conversationId: 'c' });
  await session.prompt('hi');
  await session.prompt('go');
  await first.close();
  const agent = newAgent();
  const options = { userId: 'ann', conversationId: 'c', resumeAt: 'msg_hello' };
  const again = await agent.startSession(options);
  const error = await errorOf(
    collect(again.respondToolUse({ toolUseId: 'toolu_1' }, { throwOnError: true })),
  );
  assert.ok(error instanceof ResourceError);
  assertEnd(await collect(again.send('hi again')), { stopReason: 'end_turn' });
  assert.deepEqual(resultsIn(emulator.requests.at(-1).body.messages.at(-1)), []);
  assert.equal((await agent.sessions.get('c')).status, 'idle');
});

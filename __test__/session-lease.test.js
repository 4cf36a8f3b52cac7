/** One run at a time in a session, over processes: real ones, stopped and killed. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { SessionError, openSessionStore } from '../index.js';
import { assertEnd, assertRefused, collect, configFor, errorOf } from './support/boundary.js';
import { startOwner } from './support/owner.js';
import { DURABLE, conversationIn, storedAgents, temporaryFolder } from './support/sessions.js';

const CONVERSATION = 'c';
const FIRST = 'first';
/** A lease without renewals is up after this time; it was renewed at most 5 s before its owner stopped. */
const TTL_MS = 15_000;
const RENEW_MS = 5_000;
/** A lease that nobody holds is taken at once, which is far below its time. */
const AT_ONCE_MS = 2_000;

const RULES = [
  { when: { user: FIRST, hasToolResult: true }, reply: 'First is done.' },
  { when: { user: FIRST }, reply: { toolCalls: [{ name: 'hold', input: {} }] } },
  { reply: (_, { user }) => `You said: ${user}` },
];

/** One test for each database; all run at the same time, because they wait. */
function leases(name, work) {
  for (const [driver, settings] of Object.entries(DURABLE)) {
    it(`${driver}: ${name}`, async (t) => {
      const session = await settings(temporaryFolder(t));
      if (!session) return t.skip('no PostgreSQL server on this machine');
      const { emulator, newAgent } = await storedAgents(t, session, { rules: RULES });
      const config = { ...configFor(emulator), session };
      const owner = startOwner(t, { config, conversationId: CONVERSATION, prompt: FIRST });
      await owner.told('tool');
      const contender = (more) => {
        const agent = newAgent({ session: { ...session, ...more } });
        return agent.startSession({ userId: 'ann', conversationId: CONVERSATION });
      };
      await work({ owner, contender, emulator, load: () => load(session) });
    });
  }
}

function load(session) {
  const store = openSessionStore(session);
  return store.load({ projectKey: 'test-env', sessionId: CONVERSATION });
}

/** Runs a turn to its end; gives how long it took. */
async function turn(session, text) {
  const start = performance.now();
  assertEnd(await collect(session.send(text)), { stopReason: 'end_turn' });
  return performance.now() - start;
}

function resultsIn(entries) {
  const blocks = entries.flatMap(({ message }) => message?.content ?? []);
  return blocks.filter(({ type }) => type === 'tool_result');
}

describe('leases', { concurrency: true }, () => {
  leases('an owner that stopped is replaced, and finds its session lost', async (it) => {
    const { owner, contender, load, emulator } = it;
    owner.signal('SIGSTOP');
    const session = await contender();
    const took = await turn(session, 'second');
    assert.ok(took > TTL_MS - RENEW_MS - 1_000, `taken after ${took} ms`);
    const entries = await load();
    const [result, ...others] = resultsIn(entries);
    assert.match(JSON.stringify(result), /outcome is unknown/);
    assert.deepEqual(others, []);
    owner.signal('SIGCONT');
    owner.say('finish');
    assert.equal((await owner.told('error')).code, 'E_SESSION_LEASE_LOST');
    assert.equal((await owner.told('idle')).stopReason, 'error');
    assert.deepEqual(await load(), entries, 'the late write was refused');
    await turn(session, 'third');
    // The same session object goes on with what the other process wrote.
    owner.say('again');
    assert.equal((await owner.told('idle')).stopReason, 'end_turn');
    assert.deepEqual(conversationIn(emulator.requests.at(-1)), [
      `user: ${FIRST}`,
      'assistant: tool_use',
      'user: tool_result second',
      'assistant: You said: second',
      'user: third',
      'assistant: You said: third',
      'user: again',
    ]);
    assert.equal(resultsIn(await load()).length, 1);
  });

  leases('an owner that was killed is replaced at once', async ({ owner, contender, load }) => {
    const session = await contender();
    owner.signal('SIGKILL');
    await owner.exited;
    const took = await turn(session, 'second');
    assert.ok(took < AT_ONCE_MS, `${took} ms`);
    assert.match(JSON.stringify(resultsIn(await load())), /outcome is unknown/);
  });

  leases('who waits for an owner at work gets E_SESSION_BUSY', async (it) => {
    const { owner, contender, load } = it;
    const busyTimeoutMs = 500;
    const session = await contender({ busyTimeoutMs });
    const start = performance.now();
    const error = await errorOf(session.send('second').next());
    const took = performance.now() - start;
    assertRefused(error, SessionError, 'E_SESSION_BUSY');
    assert.ok(took >= busyTimeoutMs && took < TTL_MS - RENEW_MS, `${took} ms`);
    owner.say('finish');
    assert.equal((await owner.told('idle')).stopReason, 'end_turn');
    assert.match(JSON.stringify(resultsIn(await load())), /late result/);
    await turn(session, 'second');
  });

  leases('who waits gets the session when the owner has finished', async ({ owner, contender }) => {
    const session = await contender();
    const second = turn(session, 'second');
    owner.say('finish');
    assert.equal((await owner.told('idle')).stopReason, 'end_turn');
    const took = await second;
    assert.ok(took < TTL_MS - RENEW_MS, `${took} ms`);
  });

  leases('agent.close gives the session back while the process lives on', async (it) => {
    const { owner, contender } = it;
    const session = await contender();
    owner.say('close');
    const [idle] = await owner.toldAll('idle', 'closed');
    assert.equal(idle.stopReason, 'aborted');
    const took = await turn(session, 'second');
    assert.ok(took < AT_ONCE_MS, `${took} ms`);
  });
});

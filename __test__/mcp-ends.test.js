/** FC-F4: whatever ends a run or its program, nothing that was started for it is left. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { ENTRY, collect, configFor, eventually, setUp, until } from './support/boundary.js';
import {
  helpersOf,
  launched,
  marked,
  nothingLeft,
  processesOf,
  startModule,
} from './support/processes.js';

/** Servers as people start them: by themselves, behind a launcher, and stubborn ones that leave the group. */
function servers(mark) {
  return {
    plain: marked(mark),
    launcher: launched(mark),
    stubborn: launched(mark, { ignoreSigterm: true }, 'setsid'),
    background: launched(mark, {}, 'sleep 1000 & exec'),
  };
}

/** Processes that carry the mark once all servers run: those of the shells and what they started. */
const AT_LEAST = 6;

const rules = [
  { when: { user: 'hold', hasToolResult: false }, reply: { toolCalls: [call('wait')] } },
  { when: { hasToolResult: false }, reply: { toolCalls: [call('echo', { text: 'hi' })] } },
  { reply: 'Done.' },
];

function call(name, input = {}) {
  return { name: `mcp__launcher__${name}`, input };
}

async function running(t) {
  const mark = randomUUID();
  const set = await setUp(t, { rules, mcpServers: servers(mark) });
  return { ...set, mark };
}

/** Waits until everything runs; gives the helpers behind it. */
async function allUp(mark) {
  await eventually(() => processesOf(mark).length >= AT_LEAST, 'all servers run');
  return helpersOf(mark);
}

const isCall = ({ phase }) => phase === 'tool_executing';

const ENDS = {
  'a natural end': async (session) => {
    assert.equal((await collect(session.send('go'))).at(-1).stopReason, 'end_turn');
  },
  abort: async (session) => {
    const stream = session.send('hold');
    await until(stream, isCall);
    await session.abort();
    assert.equal((await collect(stream)).at(-1).stopReason, 'aborted');
  },
  'an abort signal': async (session) => {
    const controller = new AbortController();
    const stream = session.send('hold', { signal: controller.signal });
    await until(stream, isCall);
    controller.abort();
    await collect(stream);
  },
  break: async (session) => {
    for await (const element of session.send('hold')) if (isCall(element)) break;
  },
};

for (const [how, end] of Object.entries(ENDS)) {
  test(`FC-F4: after ${how} and close of the agent no process is left`, async (t) => {
    const { agent, session, mark } = await running(t);
    const ended = end(session);
    const helpers = await allUp(mark);
    assert.equal(helpers.length, Object.keys(servers(mark)).length);
    await ended;
    await agent.close();
    assert.deepEqual(processesOf(mark), []);
    await nothingLeft(mark, helpers);
  });
}

/** A program with an agent; it says `calling` when its tool runs, and goes on when it is told to. */
function program(emulator, mark, rest) {
  return `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const config = ${JSON.stringify({ ...configFor(emulator), mcpServers: servers(mark) })};
    const agent = createAgent(config);
    const session = await agent.startSession({ userId: 'ann' });
    for await (const { phase } of session.send(${JSON.stringify(rest.says)})) {
      if (phase !== 'tool_executing') continue;
      console.log('calling');
      await new Promise((resolve) => process.stdin.once('data', resolve));
      process.stdin.destroy();
    }
    ${rest.then ?? ''}
  `;
}

async function host(t, rest) {
  const mark = randomUUID();
  const emulator = await startEmulator({ rules });
  t.after(() => emulator.close());
  const child = startModule(program(emulator, mark, rest));
  t.after(() => child.kill('SIGKILL'));
  await child.said('calling');
  return { child, mark, helpers: await allUp(mark) };
}

for (const signal of ['SIGTERM', 'SIGINT', 'SIGKILL']) {
  test(`FC-F4: after ${signal} to the host no process is left`, async (t) => {
    const { child, mark, helpers } = await host(t, { says: 'hold' });
    child.kill(signal);
    await child.ended;
    await nothingLeft(mark, helpers);
  });
}

test('FC-F4: a host that returns from main without close ends, and so do its servers', async (t) => {
  const { child, mark, helpers } = await host(t, { says: 'go' });
  child.stdin.write('go on');
  assert.deepEqual(await child.ended, { code: 0, signal: null });
  await nothingLeft(mark, helpers);
});

test('FC-F4: process.exit in the middle of a call', async (t) => {
  const then = 'setImmediate(() => process.exit(3));';
  const { child, mark, helpers } = await host(t, { says: 'go', then });
  child.stdin.write('go on');
  assert.deepEqual(await child.ended, { code: 3, signal: null });
  await nothingLeft(mark, helpers);
});

test('FC-F4: an agent that was forgotten is collected, and its servers end', async (t) => {
  const mark = randomUUID();
  const emulator = await startEmulator({ rules });
  t.after(() => emulator.close());
  const source = `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    async function once() {
      const agent = createAgent(${JSON.stringify({
        ...configFor(emulator),
        mcpServers: servers(mark),
      })});
      console.log((await agent.prompt('go')).text);
    }
    await once();
    const timer = setInterval(() => gc(), 50);
    process.stdin.on('data', () => clearInterval(timer)).on('end', () => clearInterval(timer));
  `;
  const child = startModule(source, { flags: ['--expose-gc'] });
  t.after(() => child.kill('SIGKILL'));
  await child.said('Done.');
  await nothingLeft(mark);
  child.stdin.end();
  assert.deepEqual(await child.ended, { code: 0, signal: null });
});

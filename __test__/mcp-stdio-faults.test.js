/** MCP servers over stdio, started for real: FC-F1, FC-F2, FC-F3, FC-F7 and what else servers do. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';

import { assertEnd, collect, eventually, setUp, textOf } from './support/boundary.js';
import { isRunning, marked, processesOf } from './support/processes.js';

/** Asks for the calls, one a request, then answers with the last result. */
function calling(...calls) {
  const asked = calls.map(([name, input = {}], turn) => ({
    when: { turn },
    reply: { toolCalls: [{ name, input }] },
  }));
  return [...asked, { reply: 'It says: {{toolResult}}' }];
}

/** An agent with one server, `demo`, whose model makes the calls. */
async function withServer(t, settings, ...calls) {
  const mark = randomUUID();
  const set = await setUp(t, {
    rules: calling(...calls),
    mcpServers: { demo: { ...marked(mark, settings), ...settings.config } },
  });
  return { ...set, mark };
}

const ends = (elements) =>
  elements.filter(
    ({ sessionUpdate, status }) =>
      sessionUpdate === 'tool_call_update' && (status === 'completed' || status === 'failed'),
  );
const failures = (elements) =>
  elements.filter(({ sessionUpdate, level }) => sessionUpdate === 'log' && level === 'error');
const resultsIn = ({ requests }) =>
  requests
    .at(-1)
    .body.messages.flatMap(({ content }) =>
      Array.isArray(content) ? content.filter(({ type }) => type === 'tool_result') : [],
    );

test('a tool of a server is offered and called by its full name', async (t) => {
  const { session, emulator } = await withServer(t, {}, ['mcp__demo__echo', { text: 'hello' }]);
  const elements = await collect(session.send('go'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.equal(textOf(elements), 'It says: hello');
  const { name, input_schema: schema } = emulator.requests[0].body.tools.find(
    ({ name }) => name === 'mcp__demo__echo',
  );
  assert.equal(name, 'mcp__demo__echo');
  assert.deepEqual(schema, { type: 'object', properties: { text: { type: 'string' } } });
});

test('FC-F1: a server that floods stderr', async (t) => {
  const { session } = await withServer(
    t,
    { stderrAtStart: 1 << 20, stderrPerCall: 256 << 10 },
    ['mcp__demo__echo', { text: 'one' }],
    ['mcp__demo__echo', { text: 'two' }],
  );
  const elements = await collect(session.send('go'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.deepEqual(
    ends(elements).map(({ result }) => result),
    ['one', 'two'],
  );
});

for (const [how, input] of [
  ['exits', { code: 1 }],
  ['is killed', { signal: 'SIGKILL' }],
]) {
  test(`FC-F2: a server that ${how} during a call`, async (t) => {
    const { session, emulator } = await withServer(
      t,
      {},
      ['mcp__demo__die', input],
      ['mcp__demo__echo', { text: 'again' }],
    );
    const start = performance.now();
    const elements = await collect(session.send('go'));
    assert.ok(performance.now() - start < 30_000, 'far below the limit of a call');
    assertEnd(elements, { stopReason: 'end_turn' });
    const [died, again] = ends(elements);
    assert.equal(died.status, 'failed');
    const [result] = resultsIn(emulator);
    assert.equal(result.is_error, true);
    assert.match(result.content, /demo/);
    assert.match(result.content, /the disk is on fire/);
    assert.equal(again.result, 'again');
  });
}

test('FC-F3: a command that does not exist', async (t) => {
  const { session } = await setUp(t, {
    mcpServers: { gone: { command: 'oak-no-such-command' }, demo: marked(randomUUID()) },
    rules: calling(['mcp__demo__echo', { text: 'still here' }]),
  });
  const elements = await collect(session.send('go'));
  assert.equal(textOf(elements), 'It says: still here');
  assert.equal(elements.at(-1).stopReason, 'end_turn');
  const [failure, ...more] = failures(elements);
  assert.deepEqual(more, []);
  assert.equal(failure.code, 'E_MCP_SERVER');
  assert.match(failure.message, /gone/);
  assert.match(failure.message, /oak-no-such-command/);
});

test('FC-F3: a server that prints text and never answers', async (t) => {
  const mark = randomUUID();
  const mute = marked(mark, { hang: 'initialize', banner: 'Welcome to this server!' });
  const { session, emulator } = await setUp(t, {
    mcpServers: { mute, demo: marked(randomUUID()) },
    rules: calling(['mcp__demo__echo', { text: 'without it' }]),
  });
  const elements = await collect(session.send('go'));
  assert.equal(textOf(elements), 'It says: without it');
  assert.ok(!JSON.stringify(emulator.requests[0].body.tools).includes('mcp__mute__'));
});

test('FC-F3: log lines on stdout are ignored', async (t) => {
  const { session } = await withServer(
    t,
    { banner: 'Starting...\n{"not": "a message"}\n[]\n\u0000\u0001' },
    ['mcp__demo__wrong'],
  );
  const elements = await collect(session.send('go'));
  assertEnd(elements, { stopReason: 'end_turn' });
  assert.equal(textOf(elements), 'It says: right');
});

test('FC-F3: a server that exits at once is reported with its status', async (t) => {
  const { session } = await setUp(t, {
    mcpServers: { brief: { command: '/bin/sh', args: ['-c', 'echo no licence >&2; exit 7'] } },
  });
  const [failure] = failures(await collect(session.send('go')));
  assert.match(failure.message, /brief/);
  assert.match(failure.message, /7/);
  assert.match(failure.message, /no licence/);
});

test('FC-F7: names that the gateway would refuse are mapped, and back', async (t) => {
  const long = 'n'.repeat(200);
  const names = ['a.b', 'a b', 'Créer fichier', long];
  const server = marked(randomUUID(), { names });
  const { session, emulator } = await setUp(t, {
    mcpServers: { 'my server.x': server, other: server },
    rules: [
      { when: { hasToolResult: true }, reply: '{{toolResult}}' },
      { reply: ({ tools }) => ({ toolCalls: tools.filter(isMapped).map(call) }) },
    ],
  });
  const elements = await collect(session.send('go'));
  assertEnd(elements, { stopReason: 'end_turn' });
  const offered = emulator.requests[0].body.tools.map(({ name }) => name);
  assert.equal(new Set(offered).size, offered.length);
  for (const name of offered) assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
  assert.ok(offered.includes('mcp__my_server_x__echo') && offered.includes('mcp__other__echo'));
  const told = ends(elements).map(({ result }) => result);
  assert.deepEqual(told.sort(), [...names, ...names].map((name) => `this is ${name}`).sort());
});

/** Whether a tool is none of those that each such server has. */
function isMapped({ name }) {
  return !/__(echo|whoami|environment|die|wait|sleep|big|wrong)$/.test(name);
}

function call({ name }) {
  return { name, input: {} };
}

test('a call has its own limit, and the server lives on', async (t) => {
  const { session } = await withServer(
    t,
    { config: { timeout: 1_000 } },
    ['mcp__demo__wait'],
    ['mcp__demo__echo', { text: 'on time' }],
  );
  const elements = await collect(session.send('go'));
  const [late, onTime] = ends(elements);
  assert.equal(late.status, 'failed');
  assert.match(late.error.message, /1000 ms|1 s/);
  assert.equal(onTime.result, 'on time');
});

test('a result of 50 MB is cut and hurts nobody', async (t) => {
  const { session, emulator } = await withServer(t, {}, [
    'mcp__demo__big',
    { characters: 50_000_000 },
  ]);
  const elements = await collect(session.send('go'));
  assertEnd(elements, { stopReason: 'end_turn' });
  const [result] = resultsIn(emulator);
  assert.ok(result.content.length < 110_000);
  assert.match(result.content, /50000000 characters/);
});

test('a child gets few variables, its own, and no keys', async (t) => {
  process.env.TCB_API_KEY = 'secret-of-the-host';
  process.env.OAK_TEST_OTHER = 'other';
  t.after(() => {
    delete process.env.TCB_API_KEY;
    delete process.env.OAK_TEST_OTHER;
  });
  const { session } = await withServer(t, {}, ['mcp__demo__environment']);
  const [{ result }] = ends(await collect(session.send('go')));
  const variables = JSON.parse(result);
  assert.equal(variables.PATH, process.env.PATH);
  const expected = /^(HOME|LANG|LC_\w+|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER|OAK_TEST_MARK)$/;
  assert.deepEqual(
    Object.keys(variables).filter((name) => !expected.test(name)),
    [],
  );
});

test('one connection serves 50 sends at once', async (t) => {
  const mark = randomUUID();
  const { agent } = await setUp(t, {
    mcpServers: { demo: marked(mark, { marker: 'one' }) },
    rules: [
      { when: { hasToolResult: true }, reply: '{{toolResult}}' },
      { reply: (request) => ({ toolCalls: [echo(request)] }) },
    ],
  });
  const said = await Promise.all(
    Array.from({ length: 50 }, (_, at) => agent.prompt(`number ${at}`, { userId: `u${at}` })),
  );
  assert.deepEqual(
    said.map(({ text }) => text),
    Array.from({ length: 50 }, (_, at) => `number ${at}`),
  );
  assert.equal(processesOf(mark).length, 1);
});

function echo({ messages }) {
  const { content } = messages.at(-1);
  const text = typeof content === 'string' ? content : content.at(-1).text;
  return { name: 'mcp__demo__echo', input: { text } };
}

test('a server that died between two messages is started again', async (t) => {
  const mark = randomUUID();
  const { session } = await setUp(t, {
    mcpServers: { demo: marked(mark, { marker: 'I am' }) },
    rules: [
      { when: { hasToolResult: true }, reply: '{{toolResult}}' },
      { reply: { toolCalls: [{ name: 'mcp__demo__whoami', input: {} }] } },
    ],
  });
  const first = textOf(await collect(session.send('who are you?')));
  const [{ pid }] = processesOf(mark);
  assert.equal(first, `I am ${pid}`);
  process.kill(pid, 'SIGKILL');
  await eventually(() => !isRunning(pid), 'the server is gone');
  // A message that comes before the kernel has noticed is told of the death.
  const answers = [];
  while (!/^I am \d+$/.test(answers.at(-1)) && answers.length < 3) {
    answers.push(textOf(await collect(session.send('and now?'))));
  }
  assert.match(answers.at(-1), /^I am \d+$/);
  assert.notEqual(answers.at(-1), first);
});

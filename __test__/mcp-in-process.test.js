/** Agents with MCP servers that live in their program. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';

import { InvalidConfigError, createAgent, createSdkMcpServer, tool } from '../index.js';
import {
  ENTRY,
  assertEnd,
  assertRefused,
  collect,
  configFor,
  deferred,
  errorOf,
  eventually,
  offline,
  setUp,
  textOf,
} from './support/boundary.js';
import { gatewayFor, runProgram } from './support/boundary-gateway.js';
import { claudeHelper, mcp, z } from './support/mcp-link.js';

const claude = await claudeHelper();
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const sdk = (instance) => ({ type: 'sdk', name: 'it', instance });

/** Servers of all makes with the tool `add`, whose result names the make. */
const MAKES = {
  real: () => {
    const server = new mcp.McpServer({ name: 'real', version: '1' });
    const inputSchema = { a: z.number(), b: z.number() };
    server.registerTool('add', { inputSchema }, async ({ a, b }) => text(`real ${a + b}`));
    return sdk(server);
  },
  claude: () => helperServer(claude, 'claude'),
  ours: () => helperServer({ tool, createSdkMcpServer }, 'ours'),
};

function helperServer({ tool, createSdkMcpServer }, name) {
  const add = tool('add', 'Adds', { a: z.number(), b: z.number() }, async ({ a, b }) =>
    text(`${name} ${a + b}`),
  );
  return createSdkMcpServer({ name, tools: [add] });
}

const MAKE_NAMES = Object.keys(MAKES);
const allServers = () => Object.fromEntries(MAKE_NAMES.map((name) => [name, MAKES[name]()]));

/** Calls `add` of all servers with the number that the user says, then tells the results. */
const ADD_ALL = [
  { when: { hasToolResult: true }, reply: '{{toolResult}}' },
  {
    reply: (request, { user }) => ({
      toolCalls: MAKE_NAMES.map((name) => ({
        name: `mcp__${name}__add`,
        input: { a: Number(user), b: 1 },
      })),
    }),
  },
];

/** Calls a tool once, then says `done`. */
const callOnce = (name, input = {}) => [
  { when: { hasToolResult: true }, reply: 'done: {{toolResult}}' },
  { reply: { toolCalls: [{ name, input }] } },
];

/** A server of ours with one tool. */
const serving = (name, handler, shape = {}) =>
  createSdkMcpServer({ name: 'it', tools: [tool(name, 'd', shape, handler)] });

test('servers of both packages and of this one work in one turn', async (t) => {
  const { session, emulator } = await setUp(t, { rules: ADD_ALL, mcpServers: allServers() });
  const elements = await collect(session.send('41'));
  assertEnd(elements, { stopReason: 'end_turn' });
  for (const name of MAKE_NAMES) assert.match(textOf(elements), new RegExp(`${name} 42`));
  const offered = emulator.requests[0].body.tools.map(({ name }) => name);
  assert.deepEqual(offered, MAKE_NAMES.map((name) => `mcp__${name}__add`).sort());
  for (const { input_schema: schema } of emulator.requests[0].body.tools) {
    assert.deepEqual(schema.required, ['a', 'b']);
    assert.equal(schema.properties.a.type, 'number');
  }
});

test('50 concurrent sends of two agents share each server without loss', async (t) => {
  const servers = allServers();
  const connects = MAKE_NAMES.map((name) => t.mock.method(servers[name].instance, 'connect'));
  const { agent, emulator } = await setUp(t, { rules: ADD_ALL, mcpServers: servers });
  const other = createAgent({ ...configFor(emulator), mcpServers: servers });
  t.after(() => other.close());
  const numbers = Array.from({ length: 50 }, (_, at) => at);
  const answers = await Promise.all(
    numbers.map(async (number) => {
      const session = await (number % 2 ? agent : other).startSession({ userId: `u${number}` });
      return (await session.prompt(String(number))).text;
    }),
  );
  for (const number of numbers) {
    for (const name of MAKE_NAMES) {
      assert.match(answers[number], new RegExp(`${name} ${number + 1}(?!\\d)`));
    }
  }
  for (const { mock } of connects) assert.equal(mock.callCount(), 1);
});

test('a call knows its id, tells progress and is cancelled with the run', async (t) => {
  const seen = deferred();
  const stopped = deferred();
  const server = serving('work', async (args, extra) => {
    const { progressToken } = extra._meta;
    const params = { progressToken, progress: 1, total: 2, message: 'half way' };
    await extra.sendNotification({ method: 'notifications/progress', params });
    seen.resolve(extra._meta);
    await once(extra.signal, 'abort');
    stopped.resolve();
    return text('too late');
  });
  const rules = callOnce('mcp__it__work');
  const { session, emulator } = await setUp(t, { rules, mcpServers: { it: server } });
  const elements = [];
  const running = (async () => {
    for await (const element of session.send('go')) {
      elements.push(element);
      if (JSON.stringify(element).includes('half way')) await session.abort();
    }
  })();
  const meta = await seen.promise;
  await Promise.all([running, stopped.promise]);
  assertEnd(elements, { stopReason: 'aborted' });
  const call = elements.find(({ sessionUpdate }) => sessionUpdate === 'tool_call');
  assert.equal(meta['claudecode/toolUseId'], call.toolCallId);
  assert.equal(emulator.requests.length, 1);
});

test('a tool that throws, refuses or gives no JSON is told to the model', async (t) => {
  const handlers = {
    throws: async () => {
      throw new Error('no luck');
    },
    cycle: async () => {
      const structuredContent = {};
      structuredContent.self = structuredContent;
      return { content: [], structuredContent };
    },
    none: async () => undefined,
  };
  const tools = Object.entries(handlers).map(([name, handler]) => tool(name, 'd', {}, handler));
  tools.push(tool('picky', 'd', { n: z.number() }, async () => text('')));
  const names = tools.map(({ name }) => name);
  const rules = [
    { when: { hasToolResult: true }, reply: 'done' },
    { reply: { toolCalls: names.map((name) => ({ name: `mcp__it__${name}`, input: {} })) } },
  ];
  const it = createSdkMcpServer({ name: 'it', tools });
  const { session, emulator } = await setUp(t, { rules, mcpServers: { it } });
  assertEnd(await collect(session.send('go')), { stopReason: 'end_turn' });
  const results = emulator.requests[1].body.messages.at(-1).content;
  assert.deepEqual(
    results.map(({ is_error: isError }) => isError),
    [true, true, true, true],
  );
  for (const [at, word] of [/no luck/, /JSON/, /no result/, /\bn\b/].entries()) {
    assert.match(JSON.stringify(results[at].content), word);
  }
});

test('a server that is connected elsewhere costs its tools, not the run', async (t) => {
  const { instance, ...taken } = MAKES.real();
  const [near, far] = mcp.InMemoryTransport.createLinkedPair();
  const client = new mcp.Client({ name: 'first', version: '1' });
  await Promise.all([instance.connect(far), client.connect(near)]);
  const { session, emulator } = await setUp(t, {
    rules: [{ reply: 'hello' }],
    mcpServers: { taken: { ...taken, instance }, ours: MAKES.ours() },
  });
  const elements = await collect(session.send('go'));
  assert.equal(elements.at(-1).stopReason, 'end_turn');
  const logs = elements.filter(({ sessionUpdate }) => sessionUpdate === 'log');
  assert.ok(
    logs.some(({ message }) => /taken/.test(message) && /another transport/.test(message)),
    JSON.stringify(logs),
  );
  const offered = emulator.requests[0].body.tools.map(({ name }) => name);
  assert.deepEqual(offered, ['mcp__ours__add']);
  const args = { name: 'add', arguments: { a: 1, b: 2 } };
  assert.deepEqual((await client.callTool(args)).content, text('real 3').content);
  await client.close();
});

test('an agent that closes lets its servers go', async (t) => {
  const servers = allServers();
  const { agent, session } = await setUp(t, { rules: ADD_ALL, mcpServers: servers });
  await session.prompt('1');
  await agent.close();
  for (const { instance } of Object.values(servers)) {
    const [near, far] = mcp.InMemoryTransport.createLinkedPair();
    const client = new mcp.Client({ name: 'next', version: '1' });
    await Promise.all([instance.connect(far), client.connect(near)]);
    assert.equal((await client.listTools()).tools.length, 1);
    await client.close();
  }
});

test('a server that the program closes between runs is joined again', async (t) => {
  const servers = allServers();
  const { session } = await setUp(t, { rules: ADD_ALL, mcpServers: servers });
  assert.match((await session.prompt('1')).text, /real 2/);
  for (const { instance } of Object.values(servers)) await instance.close();
  await eventually(
    async () => /real 3.*claude 3.*ours 3/s.test((await session.prompt('2')).text),
    'all servers answer again',
  );
});

test('tools that a server gets later are offered later', async (t) => {
  const server = new mcp.McpServer({ name: 'real', version: '1' });
  server.registerTool('first', { inputSchema: {} }, async () => text('1'));
  const { session, emulator } = await setUp(t, {
    rules: [{ reply: 'hello' }],
    mcpServers: { it: sdk(server) },
  });
  await session.prompt('go');
  server.registerTool('second', { inputSchema: {} }, async () => text('2'));
  await eventually(async () => {
    await session.prompt('go');
    return emulator.requests.at(-1).body.tools.length === 2;
  }, 'the new tool is offered');
});

test('what is no server object is refused with its place', async () => {
  const forged = { open() {}, send() {}, receive() {}, close() {} };
  for (const instance of [{}, [], { connect: 1, close: 2 }, { connect() {} }, forged, new Map()]) {
    const config = offline({ mcpServers: { calc: sdk(instance) } });
    const error = await errorOf(() => createAgent(config));
    const words = ['config.mcpServers.calc.instance', 'an MCP server object'];
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', ...words);
  }
});

/** Lines of a program: an agent with a server in the program, and a run that calls its tool. */
const PROGRAM = `
  import { createSdkMcpServer, tool } from ${JSON.stringify(ENTRY)};
  const said = { content: [{ type: 'text', text: 'yes' }] };
  const say = tool('say', 'Says yes', {}, async () => said);
  const it = createSdkMcpServer({ name: 'it', tools: [say] });
  const other = createAgent({ envId: 'e', model, mcpServers: { it } });
  const talk = await other.startSession({ userId: 'u' });
  console.log((await talk.prompt('call')).text);
`;

test('FC-G6: a server in the program keeps no process alive', async (t) => {
  const emulator = await gatewayFor(t, callOnce('mcp__it__say'));
  for (const end of ['', 'await other.close();']) {
    const { code, signal, err, out } = await runProgram(emulator, PROGRAM + end);
    assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' });
    assert.equal(out.trim(), 'done: yes');
  }
});

test('a server in the program survives the garbage collector', async (t) => {
  const emulator = await gatewayFor(t, callOnce('mcp__it__say'));
  const source = `${PROGRAM}
    for (let round = 0; round < 5; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      globalThis.gc();
    }
    console.log((await talk.prompt('call')).text);
  `;
  const { code, err, out } = await runProgram(emulator, source, { flags: ['--expose-gc'] });
  assert.deepEqual({ code, err }, { code: 0, err: '' });
  assert.equal(out.trim(), 'done: yes\ndone: yes');
});

test('FC-G7: servers live in workers, and end with them', async (t) => {
  const emulator = await gatewayFor(t, callOnce('mcp__it__say'));
  const worker = `
    import { parentPort, workerData } from 'node:worker_threads';
    import { createAgent, createSdkMcpServer, tool } from ${JSON.stringify(ENTRY)};
    async function main() {
      const said = { content: [{ type: 'text', text: 'yes' }] };
      const say = tool('say', 'Says yes', {}, async () => {
        parentPort.postMessage('tool');
        return workerData.hangs ? new Promise(() => {}) : said;
      });
      const it = createSdkMcpServer({ name: 'it', tools: [say] });
      const agent = createAgent({ envId: 'e', model: workerData.model, mcpServers: { it } });
      const session = await agent.startSession({ userId: 'u' });
      parentPort.postMessage((await session.prompt('call')).text);
    }
    main();
  `;
  const source = `
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    const url = new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(worker)}`)});
    for (let round = 0; round < 3; round += 1) {
      const whole = new Worker(url, { workerData: { model } });
      const said = [];
      whole.on('message', (word) => said.push(word));
      await once(whole, 'exit');
      console.log(said.join());
      const cut = new Worker(url, { workerData: { model, hangs: true } });
      await once(cut, 'message');
      await cut.terminate();
    }
  `;
  const { code, signal, err, out } = await runProgram(emulator, source);
  assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' });
  assert.equal(out, 'tool,done: yes\n'.repeat(3));
});

/** The server of `createSdkMcpServer`, driven by the real client of the MCP SDK. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

import * as z4own from 'zod';
import * as mini from 'zod/mini';
import { z as z3own } from 'zod/v3';

import { InvalidConfigError, createSdkMcpServer, tool } from '../index.js';
import { oracle } from '../scripts/oracle.js';
import { assertRefused, errorOf } from './support/boundary.js';
import { claudeHelper, mcp, z } from './support/mcp-link.js';

const claude = await claudeHelper();
const z3old = createRequire(join(oracle('schemas'), 'package.json'))('zod-3').z;
const text = (words) => ({ content: [{ type: 'text', text: words }] });

/** A client of the SDK, connected to a server object. */
async function clientOf(t, instance, options) {
  const [near, far] = mcp.InMemoryTransport.createLinkedPair();
  const client = new mcp.Client({ name: 'test', version: '1' }, options);
  await Promise.all([instance.connect(far), client.connect(near)]);
  t.after(() => client.close());
  return client;
}

/** A client of a server of ours with these tools. */
const serving = (t, tools, more, options) =>
  clientOf(t, createSdkMcpServer({ name: 'ours', tools, ...more }).instance, options);

test('the server introduces itself and lists what it was given', async (t) => {
  const extras = { annotations: { readOnlyHint: true }, searchHint: 'sums', alwaysLoad: true };
  const add = tool('add', 'Adds', { a: z.number() }, async () => text(''), extras);
  const client = await serving(t, [add], { version: '2.1.0', instructions: 'Add things.' });
  assert.deepEqual(client.getServerVersion(), { name: 'ours', version: '2.1.0' });
  assert.deepEqual(client.getServerCapabilities(), { tools: {} });
  assert.equal(client.getInstructions(), 'Add things.');
  await client.ping();
  const { tools } = await client.listTools();
  assert.equal(tools.length, 1);
  const [{ name, description, annotations, _meta }] = tools;
  assert.deepEqual(
    { name, description, annotations, _meta },
    {
      name: 'add',
      description: 'Adds',
      annotations: { readOnlyHint: true },
      _meta: { 'anthropic/searchHint': 'sums', 'anthropic/alwaysLoad': true },
    },
  );
});

test('a server without tools has none to list', async (t) => {
  const client = await serving(t, undefined);
  assert.deepEqual(client.getServerCapabilities(), {});
  await assert.rejects(client.request({ method: 'tools/list' }, mcp.ListToolsResultSchema), {
    code: -32601,
  });
  assert.deepEqual((await (await serving(t, [])).listTools()).tools, []);
});

test('the version of the protocol is the one asked for, or the newest', async () => {
  const { instance } = createSdkMcpServer({ name: 'ours' });
  const said = [];
  const transport = {
    start: async () => {},
    close: async () => {},
    send: async (m) => said.push(m),
  };
  await instance.connect(transport);
  const versions = [...mcp.SUPPORTED_PROTOCOL_VERSIONS, '1999-01-01', undefined];
  for (const [id, protocolVersion] of versions.entries()) {
    transport.onmessage({ jsonrpc: '2.0', id, method: 'initialize', params: { protocolVersion } });
  }
  while (said.length < versions.length) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(
    said.map(({ result }) => result.protocolVersion),
    versions.map((version) =>
      mcp.SUPPORTED_PROTOCOL_VERSIONS.includes(version) ? version : mcp.LATEST_PROTOCOL_VERSION,
    ),
  );
});

/** The shape that every zod is asked for. */
const shape = (zod) => ({
  city: zod.string().describe('A city'),
  days: zod.number().default(3),
  unit: zod.enum(['c', 'f']).optional(),
  place: zod.object({ lat: zod.number() }).describe('Where'),
  tags: zod.array(zod.string()),
});

/** Only zod 3 may refuse more properties than there are; the model need not know. */
const open = (schema) =>
  JSON.parse(JSON.stringify(schema), function (key, value) {
    return key === 'additionalProperties' && value === false ? undefined : value;
  });

for (const [name, given] of Object.entries({
  'zod 4': shape(z4own),
  'another zod 4': shape(z),
  'zod 3 in zod 4': shape(z3own),
  'zod 3': shape(z3old),
  'no input': {},
})) {
  test(`${name}: the schema is that of the Claude Agent SDK`, async (t) => {
    const tools = (make) => [make('t', 'd', given, async () => text(''))];
    const theirs = claude.createSdkMcpServer({ name: 'theirs', tools: tools(claude.tool) });
    const [ours] = (await (await serving(t, tools(tool))).listTools()).tools;
    const [wanted] = (await (await clientOf(t, theirs.instance)).listTools()).tools;
    assert.deepEqual(open(ours.inputSchema), open(wanted.inputSchema));
  });
}

test('FC-F8: all sources of schemas give the handler what they parse', async (t) => {
  const json = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
  const sources = {
    shape: { n: z.coerce.number(), more: z.string().default('m') },
    object: z4own.object({ n: z4own.coerce.number(), more: z4own.string().default('m') }),
    three: { n: z3own.coerce.number(), more: z3own.string().default('m') },
    small: mini.object({ n: mini.coerce.number(), more: mini._default(mini.string(), 'm') }),
  };
  const say = async (args) => text(JSON.stringify(args));
  const client = await serving(t, [
    ...Object.entries(sources).map(([name, source]) => tool(name, '', source, say)),
    tool('json', '', json, say),
  ]);
  for (const name of Object.keys(sources)) {
    const { content } = await client.callTool({ name, arguments: { n: '5' } });
    assert.deepEqual(JSON.parse(content[0].text), { n: 5, more: 'm' }, name);
  }
  const { content } = await client.callTool({ name: 'json', arguments: { n: 5 } });
  assert.equal(content[0].text, '{"n":5}');
  const { tools } = await client.listTools();
  assert.deepEqual(tools.at(-1).inputSchema, json);
  for (const { inputSchema } of tools) assert.deepEqual(inputSchema.required, ['n']);
});

test('what the model can mend is a result; what it cannot is an error', async (t) => {
  const fails = (error) => async () => {
    throw error;
  };
  const client = await serving(t, [
    tool('picky', '', { n: z.number(), s: z.string() }, async () => text('')),
    tool('throws', '', {}, fails(new Error('boom'))),
    tool('sync', '', {}, () => {
      throw 'a word';
    }),
    tool('nothing', '', {}, fails(undefined)),
    tool('empty', '', {}, async () => undefined),
    tool('list', '', {}, async () => []),
    tool('own', '', {}, async () => ({ ...text('mine'), isError: true })),
  ]);
  const cases = [
    ['picky', /Invalid arguments for tool picky:\n- n: .*\n- s: /],
    ['throws', /^boom$/],
    ['sync', /^a word$/],
    ['nothing', /^Tool nothing failed$/],
    ['empty', /empty gave no result.*content/],
    ['list', /list gave no result/],
    ['own', /^mine$/],
    ['unknown', /Tool unknown not found/],
    ['constructor', /Tool constructor not found/],
  ];
  for (const [name, wanted] of cases) {
    const { isError, content } = await client.callTool({ name });
    assert.equal(isError, true, name);
    assert.match(content[0].text, wanted);
  }
  const odd = client.request(
    { method: 'tools/call', params: { name: 5 } },
    mcp.CallToolResultSchema,
  );
  await assert.rejects(odd, { code: -32602 });
});

test('structured content and other fields pass as they are', async (t) => {
  const result = { structuredContent: { sum: 3 }, _meta: { 'x/y': 1 } };
  const client = await serving(t, [tool('add', '', {}, async () => result)]);
  assert.deepEqual(await client.callTool({ name: 'add' }), { ...result, content: [] });
});

test('a cancelled call is aborted and not answered', async (t) => {
  const stopped = [];
  const wait = tool('wait', '', {}, async (args, { signal }) => {
    stopped.push(once(signal, 'abort'));
    patience.abort('enough');
    await stopped[0];
    return text('too late');
  });
  const client = await serving(t, [wait, tool('on', '', {}, async () => text('on'))]);
  const patience = new AbortController();
  const answers = [];
  const { onmessage } = client.transport;
  client.transport.onmessage = (message, extra) => {
    answers.push(message);
    onmessage(message, extra);
  };
  const call = client.callTool({ name: 'wait' }, undefined, { signal: patience.signal });
  await assert.rejects(call, /enough/);
  await stopped[0];
  assert.deepEqual((await client.callTool({ name: 'on' })).content, text('on').content);
  assert.equal(answers.length, 1);
});

test('a handler tells progress, logs, and asks the client', async (t) => {
  const seen = {};
  const work = tool('work', '', {}, async (args, extra) => {
    Object.assign(seen, extra);
    const { progressToken } = extra._meta;
    for (const progress of [1, 2]) {
      const params = { progressToken, progress, total: 2 };
      await extra.sendNotification({ method: 'notifications/progress', params });
    }
    const { roots } = await extra.sendRequest({ method: 'roots/list' }, mcp.ListRootsResultSchema);
    const refused = await extra
      .sendRequest({ method: 'sampling/createMessage', params: {} }, mcp.CreateMessageResultSchema)
      .catch(({ code }) => code);
    return text(`${roots[0].uri} ${refused}`);
  });
  const client = await serving(t, [work], {}, { capabilities: { roots: {} } });
  client.setRequestHandler(mcp.ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///w' }] }));
  const progress = [];
  const { content } = await client.callTool({ name: 'work' }, undefined, {
    onprogress: (told) => progress.push(told),
  });
  assert.equal(content[0].text, 'file:///w -32601');
  assert.deepEqual(progress, [
    { progress: 1, total: 2 },
    { progress: 2, total: 2 },
  ]);
  assert.ok(seen.signal instanceof AbortSignal);
  assert.equal(typeof seen.requestId, 'number');
  const fields =
    'signal sessionId _meta requestId sendNotification sendRequest authInfo requestInfo';
  for (const field of fields.split(' ')) assert.ok(field in seen, field);
});

test('a request to a client that goes away is rejected, and so is the next', async (t) => {
  let asked;
  const ask = tool('ask', '', {}, async (args, extra) => {
    asked = extra.sendRequest({ method: 'roots/list' });
    return asked;
  });
  const client = await serving(t, [ask], {}, { capabilities: { roots: {} } });
  client.setRequestHandler(mcp.ListRootsRequestSchema, () => new Promise(() => {}));
  const call = client.callTool({ name: 'ask' });
  while (!asked) await new Promise((resolve) => setImmediate(resolve));
  await Promise.all([
    assert.rejects(asked, { code: -32000 }),
    assert.rejects(call, /closed/),
    client.close(),
  ]);
});

test('a server speaks over one transport at a time, and over the next one after close', async (t) => {
  const { instance } = createSdkMcpServer({ name: 'ours', tools: [] });
  const first = await clientOf(t, instance);
  const [, other] = mcp.InMemoryTransport.createLinkedPair();
  await assert.rejects(instance.connect(other), /Already connected to a transport/);
  await first.ping();
  await instance.close();
  await (await clientOf(t, instance)).ping();
});

test('the objects have the shapes of the Claude Agent SDK', () => {
  const handler = async () => text('');
  for (const extras of [undefined, {}, { searchHint: 's' }, { alwaysLoad: false }]) {
    const args = ['a', 'b', {}, handler, extras];
    assert.deepEqual(tool(...args), claude.tool(...args));
  }
  for (const timeout of [undefined, 0, -1, 500, 5_000, 1.5, '5000', null, NaN]) {
    const shapeOf = (config) => ({ ...config, instance: typeof config.instance.connect });
    const options = { name: 'n', timeout, tools: [], alwaysLoad: true };
    assert.deepEqual(
      shapeOf(createSdkMcpServer(options)),
      shapeOf(claude.createSdkMcpServer(options)),
    );
  }
});

test('tools and servers of this package and of the Claude Agent SDK mix', async (t) => {
  const own = { tool, createSdkMcpServer };
  for (const [server, tools] of [
    [own, claude],
    [claude, own],
  ]) {
    const made = tools.tool('t', 'd', { n: z.number() }, async ({ n }) => text(String(n)));
    const client = await clientOf(
      t,
      server.createSdkMcpServer({ name: 'mixed', alwaysLoad: true, tools: [made] }).instance,
    );
    const { content } = await client.callTool({ name: 't', arguments: { n: 4 } });
    assert.equal(content[0].text, '4');
    const [{ _meta }] = (await client.listTools()).tools;
    assert.deepEqual(_meta, { 'anthropic/alwaysLoad': true });
  }
});

test('wrong options are refused with their place', async () => {
  const fine = tool('a', 'b', {}, async () => text(''));
  const refusals = [
    [undefined, 'must be an object'],
    [[], 'must be an object'],
    [{}, 'name must be a non-empty string'],
    [{ name: ' ' }, 'name'],
    [{ name: 'x', version: 5 }, 'version'],
    [{ name: 'x', instructions: {} }, 'instructions'],
    [{ name: 'x', tools: {} }, 'tools must be an array'],
    [{ name: 'x', tools: [fine, null] }, 'tools[1] must be an object'],
    [{ name: 'x', tools: [{ ...fine, name: '' }] }, 'tools[0].name'],
    [{ name: 'x', tools: [{ ...fine, description: 5 }] }, 'tools[0].description'],
    [{ name: 'x', tools: [{ ...fine, handler: undefined }] }, 'tools[0].handler'],
    [{ name: 'x', tools: [{ ...fine, inputSchema: 5 }] }, 'tools[0].inputSchema'],
    [
      { name: 'x', tools: [{ ...fine, inputSchema: { a: z.bigint() } }] },
      'inputSchema',
      'tool "a"',
    ],
    [{ name: 'x', tools: [{ ...fine, inputSchema: z.string() }] }, 'inputSchema', 'object'],
    [{ name: 'x', tools: [fine, fine] }, 'tools[1].name', 'taken'],
  ];
  for (const [options, ...words] of refusals) {
    const error = await errorOf(() => createSdkMcpServer(options));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'createSdkMcpServer', ...words);
  }
});

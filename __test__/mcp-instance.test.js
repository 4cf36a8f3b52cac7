/** Server objects of the program: one connection, many clients. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { createSdkMcpServer, tool } from '../index.js';
import { LinkClient, claudeHelper, functionsOf, mcp, z } from './support/mcp-link.js';

const { frames: RECORDED } = JSON.parse(
  readFileSync(new URL('fixtures/claude-sdk/mcp-jsonrpc.json', import.meta.url), 'utf8'),
);
const claude = await claudeHelper();
const text = (words) => ({ content: [{ type: 'text', text: words }] });

/** A server of the SDK with the tools of these tests. */
function realServer(name = 'demo') {
  const server = new mcp.McpServer({ name, version: '1' }, { capabilities: { logging: {} } });
  const state = { started: [], stopped: [] };
  const add = (tool, shape, handler) => server.registerTool(tool, { inputSchema: shape }, handler);
  add('echo', { text: z.string() }, async (args) => text(args.text));
  add('wait', { id: z.string() }, async ({ id }, { signal }) => {
    state.started.push(id);
    state.wake?.();
    await once(signal, 'abort');
    state.stopped.push(id);
    state.wake?.();
    return text('stopped');
  });
  add('progress', { of: z.string() }, async ({ of }, { _meta, sendNotification }) => {
    const { progressToken } = _meta;
    const params = { progressToken, progress: 1, message: of };
    await sendNotification({ method: 'notifications/progress', params });
    const log = { level: 'info', data: of };
    await sendNotification({ method: 'notifications/message', params: log });
    return text(String(progressToken));
  });
  state.until = async (list, length) => {
    while (state[list].length < length) await new Promise((resolve) => (state.wake = resolve));
  };
  return { server, state };
}

/** The three makes of server, each with the tool `echo`. */
const MAKES = {
  'the MCP SDK': () => realServer().server,
  'the Claude Agent SDK': () => {
    const echo = claude.tool('echo', 'Echo', { text: z.string() }, async (args) => text(args.text));
    return claude.createSdkMcpServer({ name: 'demo', tools: [echo] }).instance;
  },
  'this package': () => {
    const echo = tool('echo', 'Echo', { text: z.string() }, async (args) => text(args.text));
    return createSdkMcpServer({ name: 'demo', tools: [echo] }).instance;
  },
};

test('the recorded conversation with a server of the Claude Agent SDK happens again', async () => {
  const functions = functionsOf(MAKES['the Claude Agent SDK']());
  const { signal } = new AbortController();
  await functions.open({ link: 1 }, signal);
  for (const { dir, m: frame } of RECORDED.filter(({ ev }) => ev !== 'connect')) {
    if (dir === 'client->server') {
      // Versions were left out when it was recorded.
      if (frame.params?.clientInfo) frame.params.clientInfo.version = '1';
      functions.send({ link: 1, frame });
      continue;
    }
    const [said] = await functions.receive({ link: 1 }, signal);
    const { result, ...rest } = JSON.parse(said);
    if (result?.serverInfo) delete result.serverInfo.version;
    assert.deepEqual({ ...rest, result }, frame);
  }
  functions.close({ link: 1 });
});

for (const [make, create] of Object.entries(MAKES)) {
  test(`${make}: two clients share one connection and get their own answers`, async (t) => {
    const instance = create();
    const connect = t.mock.method(instance, 'connect');
    const [one, two] = [await LinkClient.to(t, instance), await LinkClient.to(t, instance)];
    const calls = Array.from({ length: 20 }, (_, at) => [
      one.text('echo', { text: `one ${at}` }),
      two.text('echo', { text: `two ${at}` }),
    ]);
    for (const [at, pair] of calls.entries()) {
      assert.deepEqual(await Promise.all(pair), [`one ${at}`, `two ${at}`]);
    }
    assert.equal(connect.mock.callCount(), 1);
  });

  test(`${make}: is free again when the last client is gone, and not before`, async (t) => {
    const instance = create();
    const [one, two] = [await LinkClient.to(t, instance), await LinkClient.to(t, instance)];
    one.close();
    assert.equal(await two.text('echo', { text: 'still here' }), 'still here');
    const [, refused] = mcp.InMemoryTransport.createLinkedPair();
    await assert.rejects(instance.connect(refused), /Already connected/);
    two.close();
    await Promise.all([one.ended, two.ended]);
    assert.throws(() => two.send({ method: 'x' }), /closed/);

    const [client, server] = mcp.InMemoryTransport.createLinkedPair();
    await instance.connect(server);
    await assert.rejects(
      new LinkClient(functionsOf(instance)).open(),
      /connected to another transport.*close\(\) it there/,
    );
    const elsewhere = new mcp.Client({ name: 'elsewhere', version: '1' });
    await elsewhere.connect(client);
    const args = { name: 'echo', arguments: { text: 'untouched' } };
    assert.deepEqual((await elsewhere.callTool(args)).content, text('untouched').content);
    await elsewhere.close();

    const again = await LinkClient.to(t, instance);
    assert.equal(await again.text('echo', { text: 'again' }), 'again');
  });

  test(`${make}: closed by the program, its clients learn it and may join again`, async (t) => {
    const instance = create();
    const [one, two] = [await LinkClient.to(t, instance), await LinkClient.to(t, instance)];
    await instance.close();
    await Promise.all([one.ended, two.ended]);
    assert.throws(() => one.send({ method: 'x' }), /closed/);
    const again = await LinkClient.to(t, instance);
    one.close();
    two.close();
    assert.equal(await again.text('echo', { text: 'again' }), 'again');
  });

  test(`${make}: a handler that throws and bad arguments are results`, async (t) => {
    const client = await LinkClient.to(t, create());
    for (const [name, args] of [
      ['nobody', {}],
      ['echo', { text: 5 }],
    ]) {
      const { isError, content } = await client.call(name, args);
      assert.equal(isError, true);
      assert.match(content[0].text, new RegExp(name));
    }
    await assert.rejects(client.request('no/such'), { code: -32601 });
    assert.deepEqual(await client.request('ping'), {});
  });
}

test('a cancelled call is aborted, is not answered, and is the only one', async (t) => {
  const { server, state } = realServer();
  const [one, two] = [await LinkClient.to(t, server), await LinkClient.to(t, server)];
  const unanswered = (answer) => answer.then(assert.fail, assert.fail);
  void unanswered(one.request('tools/call', { name: 'wait', arguments: { id: 'one' } }, 'same'));
  void unanswered(two.request('tools/call', { name: 'wait', arguments: { id: 'two' } }, 'same'));
  await state.until('started', 2);
  two.send({ method: 'notifications/cancelled', params: { requestId: 'same' } });
  await state.until('stopped', 1);
  assert.deepEqual(state.stopped, ['two']);
  assert.equal(await two.text('echo', { text: 'on' }), 'on');
  // A client that leaves takes its calls along.
  one.close();
  await state.until('stopped', 2);
});

test('progress and logs of a call are for its client, with the token it chose', async (t) => {
  const { server } = realServer();
  const [one, two] = [await LinkClient.to(t, server), await LinkClient.to(t, server)];
  const asked = (client, progressToken) =>
    client.call('progress', { of: progressToken }, { _meta: { progressToken } });
  const [first, second] = await Promise.all([asked(one, 'token'), asked(two, 'other')]);
  assert.notDeepEqual(first.content, second.content);
  for (const [client, token] of [
    [one, 'token'],
    [two, 'other'],
  ]) {
    const { params } = await client.notified('notifications/progress');
    assert.deepEqual(params, { progressToken: token, progress: 1, message: token });
    const { params: log } = await client.notified('notifications/message');
    assert.deepEqual(log, { level: 'info', data: token });
    assert.equal(client.notifications.length, 2);
  }
  const silent = await one.call('progress', { of: 'x' }, { _meta: {} });
  assert.deepEqual(silent.content, text('undefined').content);
});

test('what belongs to no call is for all clients', async (t) => {
  const { server } = realServer();
  const [one, two] = [await LinkClient.to(t, server), await LinkClient.to(t, server)];
  server.registerTool('later', {}, async () => text('late'));
  await server.server.sendLoggingMessage({ level: 'info', data: 'all' });
  for (const client of [one, two]) {
    await client.notified('notifications/tools/list_changed');
    await client.notified('notifications/message');
    const { tools } = await client.request('tools/list');
    assert.ok(tools.some(({ name }) => name === 'later'));
  }
});

test('a request of the server goes to one client, whose answer it gets', async (t) => {
  const { server } = realServer();
  const [one, two] = [await LinkClient.to(t, server), await LinkClient.to(t, server)];
  assert.deepEqual(await server.server.ping(), {});
  assert.deepEqual([one.requests.length, two.requests.length], [1, 0]);
  server.registerTool('ask', { inputSchema: {} }, async (args, { sendRequest }) => {
    const request = { method: 'roots/list' };
    const { code } = await sendRequest(request, mcp.ListRootsResultSchema).catch((error) => error);
    return text(String(code));
  });
  assert.equal(await two.text('ask'), '-32601');
  assert.deepEqual([one.requests.length, two.requests.length], [1, 1]);
  // A client that leaves answers no more: the server is told.
  one.answer = () => one.close();
  await assert.rejects(server.server.ping(), { code: -32000 });
});

/** Server objects that misbehave, and configurations that have none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError, createAgent } from '../index.js';
import { prepareMcpServers } from '../js/mcp/servers.js';
import { ENTRY, assertRefused, errorOf, offline, runClean } from './support/boundary.js';
import { LinkClient, functionsOf, mcp, z } from './support/mcp-link.js';

const SERVERS = new URL('../js/mcp/servers.js', import.meta.url).href;

/** A server object that lets a test play the server; `open` gives its transport. */
function played(answer = () => {}) {
  const server = {
    connect: async (transport) => {
      server.transport = transport;
      transport.onmessage = (frame) => answer(frame, transport);
      await transport.start();
    },
    close: async () => server.transport.close(),
  };
  return server;
}

/** A server object that connects when it is released. */
function hanging() {
  const server = played();
  const { connect } = server;
  let isClosed = false;
  let release;
  const released = new Promise((resolve) => (release = resolve));
  server.connect = async (transport) => {
    transport.onclose = () => (isClosed = true);
    await released;
    await connect(transport);
  };
  return { server, release, closed: () => isClosed };
}

async function joined(t, instance) {
  const client = new LinkClient(functionsOf(instance));
  await client.open();
  t.after(() => client.close());
  return client;
}

test('results that are no JSON are failures of their calls', async (t) => {
  const cycle = {};
  cycle.self = cycle;
  const throwing = {
    toJSON: () => {
      throw new Error('no words');
    },
  };
  const results = { cycle, big: { n: 1n }, throwing, none: undefined, null: null, word: 'x' };
  const client = await joined(
    t,
    played(({ id, method }, { send }) => send({ jsonrpc: '2.0', id, result: results[method] })),
  );
  for (const method of Object.keys(results)) {
    await assert.rejects(client.request(method), { code: -32603 }, method);
  }
});

test('a handler of the SDK whose result is no JSON fails, and the server goes on', async (t) => {
  const server = new mcp.McpServer({ name: 'x', version: '1' });
  const odd = (value) => async () => ({ content: [], structuredContent: { value } });
  server.registerTool('big', { inputSchema: {} }, odd(1n));
  server.registerTool('fine', { inputSchema: { n: z.number() } }, odd(1));
  const told = [];
  server.server.onerror = ({ message }) => told.push(message);
  const client = await LinkClient.to(t, server);
  await assert.rejects(client.call('big'), { message: /BigInt/ });
  const { structuredContent } = await client.call('fine', { n: 1 });
  assert.deepEqual(structuredContent, { value: 1 });
  assert.match(told[0], /BigInt/);
});

test('a server that throws or rejects fails the call', async (t) => {
  const client = await joined(
    t,
    played(({ method }) => {
      if (method === 'rejects') return Promise.reject(new Error('late'));
      throw method === 'nothing' ? undefined : new Error('at once');
    }),
  );
  await assert.rejects(client.request('throws'), { code: -32603, message: 'at once' });
  await assert.rejects(client.request('rejects'), { code: -32603, message: 'late' });
  await assert.rejects(client.request('nothing'), { code: -32603 });
  client.send({ method: 'notifications/initialized' });
});

test('answers to nobody, twice and of a wrong shape change nothing', async (t) => {
  const client = await joined(
    t,
    played(({ id }, { send }) => {
      for (const frame of [null, 5, 'x', [], {}, { id: 99, result: {} }, { id: {}, result: {} }]) {
        send(frame);
      }
      send({
        id,
        get result() {
          throw new Error('a trap');
        },
      });
      send({ id, result: { first: true } });
      send({ id, result: { second: true } });
      send({ method: 'notifications/progress', params: { progressToken: 99 } });
      send({ method: 'notifications/cancelled', params: null });
    }),
  );
  await assert.rejects(client.request('a'), { code: -32603 });
  await assert.rejects(client.request('b'), { code: -32603 });
  assert.deepEqual(client.notifications, []);
});

test('a server that tells without end while nobody listens is kept within bounds', async (t) => {
  const server = played(({ id }, { send }) => send({ id, result: { ok: true } }));
  const functions = functionsOf(server);
  const { signal } = new AbortController();
  await functions.open({ link: 1 }, signal);
  t.after(() => functions.close({ link: 1 }));
  const data = 'x'.repeat(1_000);
  for (let at = 0; at < 20_000; at += 1) {
    server.transport.send({ method: 'notifications/message', params: { data } });
    server.transport.send({ method: 'notifications/tools/list_changed' });
  }
  functions.send({ link: 1, frame: { id: 7, method: 'ping' } });
  let refused = 0;
  const { onmessage } = server.transport;
  server.transport.onmessage = (frame) => {
    if (frame.error) refused += 1;
    else onmessage(frame);
  };
  for (let id = 0; id < 5_000; id += 1) server.transport.send({ id, method: 'roots/list' });
  const frames = (await functions.receive({ link: 1 }, signal)).map((text) => JSON.parse(text));
  const count = (method) => frames.filter((frame) => frame.method === method).length;
  assert.equal(count('notifications/message'), 1_000);
  assert.equal(count('notifications/tools/list_changed'), 1);
  assert.equal(count('roots/list'), 1_000);
  assert.equal(refused, 4_000);
  assert.deepEqual(frames.find(({ id }) => id === 7)?.result, { ok: true });
  // Once fetched, there is room again.
  server.transport.send({ method: 'notifications/message', params: { data } });
  assert.equal((await functions.receive({ link: 1 }, signal)).length, 1);
});

test('a long queue comes in pieces, each of bounded size', async (t) => {
  const server = played();
  const functions = functionsOf(server);
  const { signal } = new AbortController();
  await functions.open({ link: 1 }, signal);
  t.after(() => functions.close({ link: 1 }));
  for (let id = 1; id <= 6; id += 1) functions.send({ link: 1, frame: { id, method: 'x' } });
  const blob = 'x'.repeat(5 << 20);
  for (let id = 1; id <= 6; id += 1) server.transport.send({ id, result: { blob } });
  const sizes = [];
  while (sizes.reduce((a, b) => a + b, 0) < 6) {
    sizes.push((await functions.receive({ link: 1 }, signal)).length);
  }
  assert.deepEqual(sizes, [2, 2, 2]);
});

test('a wait that is given up takes no frames along', async (t) => {
  const server = played();
  const functions = functionsOf(server);
  const { signal } = new AbortController();
  await functions.open({ link: 1 }, signal);
  t.after(() => functions.close({ link: 1 }));
  const gaveUp = new AbortController();
  const first = functions.receive({ link: 1 }, gaveUp.signal);
  const second = functions.receive({ link: 1 }, signal);
  gaveUp.abort();
  assert.deepEqual(await first, []);
  server.transport.send({ method: 'notifications/message' });
  assert.equal((await second).length, 1);
});

test('connecting that fails says why, and may be tried again', async (t) => {
  const open = (instance) => new LinkClient(functionsOf(instance)).open();
  const close = async () => {};
  const sync = () => {
    throw new Error('not today');
  };
  await assert.rejects(open({ connect: sync, close }), /not today/);
  await assert.rejects(open({ connect: async () => {}, close }), /did not set onmessage/);
  const server = played();
  const { connect } = server;
  server.connect = async () => sync();
  await assert.rejects(open(server), /not today/);
  server.connect = connect;
  await joined(t, server);
});

test('connecting that hangs is given up by one, and the others go on', async (t) => {
  const { server, release, closed } = hanging();
  const patience = new AbortController();
  const impatient = new LinkClient(functionsOf(server)).open(patience.signal);
  const patient = joined(t, server);
  patience.abort();
  await assert.rejects(impatient, /given up/);
  release();
  const client = await patient;
  assert.equal(closed(), false);
  client.close();
  assert.equal(closed(), true);
});

test('a connection that comes about when nobody waits any more is ended', async () => {
  const { server, release, closed } = hanging();
  const patience = new AbortController();
  const late = new LinkClient(functionsOf(server)).open(patience.signal);
  patience.abort();
  await assert.rejects(late, /given up/);
  release();
  while (!closed()) await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(new LinkClient(functionsOf(server)).open(AbortSignal.abort()), /given up/);
});

test('FC-G6: a server object keeps no process alive and survives the garbage collector', async () => {
  const out = await runClean(
    `
    import { prepareMcpServers } from ${JSON.stringify(SERVERS)};
    import { createSdkMcpServer, tool } from ${JSON.stringify(ENTRY)};
    const make = () => {
      const say = tool('say', 'Says', {}, async () => ({ content: [{ type: 'text', text: 'yes' }] }));
      return prepareMcpServers({ it: createSdkMcpServer({ name: 'it', tools: [say] }) }).it.instance;
    };
    const functions = make();
    const { signal } = new AbortController();
    await functions.open({ link: 1 }, signal);
    const waiting = functions.receive({ link: 1 }, signal);
    for (let round = 0; round < 5; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      globalThis.gc();
    }
    functions.send({ link: 1, frame: { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'say' } } });
    console.log(JSON.parse((await waiting)[0]).result.content[0].text);
    void functions.receive({ link: 1 }, signal);
    `,
    { flags: ['--expose-gc'] },
  );
  assert.match(out, /^yes/);
});

test('configurations without a server object are refused with their place', async () => {
  const sdk = (instance) => offline({ mcpServers: { calc: { type: 'sdk', name: 'x', instance } } });
  const refused = async (instance, ...words) => {
    const error = await errorOf(() => createAgent(sdk(instance)));
    assertRefused(
      error,
      InvalidConfigError,
      'E_INVALID_CONFIG',
      'mcpServers.calc.instance',
      ...words,
    );
  };
  for (const instance of [undefined, null, 5, 'x']) {
    await refused(instance, 'an MCP server object');
  }
  const trap = {
    get connect() {
      throw new Error('no');
    },
  };
  await refused(trap, 'connect', 'getter');
});

test('what is no server object is left for the core to refuse', () => {
  for (const odd of [null, 5, 'x', [], new Map(), { a: null }, { a: 5 }, { a: [] }, { a: {} }]) {
    assert.deepEqual(prepareMcpServers(odd), odd);
  }
});

/** The rows of oak-api 3.2, as the decisions of the design have them. */
import assert from 'node:assert/strict';
import { mkdtempSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import {
  ConfigError,
  InvalidConfigError,
  NotImplementedError,
  ResourceError,
  createAgent,
} from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, offline } from './support/boundary.js';

for (const name of ['TCB_API_KEY', 'CLOUDBASE_APIKEY', 'OAK_SANDBOX_API_KEY', 'OAK_EMULATOR_HUB']) {
  delete process.env[name];
}

const refusal = (config) => errorOf(() => createAgent(config));
const invalid = async (config, ...words) =>
  assertRefused(await refusal(config), InvalidConfigError, 'E_INVALID_CONFIG', ...words);
const contradictory = async (config, ...words) =>
  assertRefused(await refusal(config), ConfigError, 'E_CONFIG', ...words);
const unbuilt = async (config, ...words) =>
  assertRefused(await refusal(config), NotImplementedError, 'E_NOT_IMPLEMENTED', ...words);

test('row 1: envId is required and must be a non-empty string', async () => {
  for (const envId of [undefined, null, '', '  ', 0, 7, false, true, {}, [], Symbol('x'), 1n]) {
    await invalid({ ...offline(), envId }, 'envId', /non-empty string/);
  }
  for (const config of [undefined, null, 'env', 5, [], () => {}]) await invalid(config, /object/);
});

test('row 2: model is required; an object without id is refused', async () => {
  for (const model of [undefined, null]) {
    await invalid({ envId: 'e', model }, 'config.model is required');
  }
  for (const model of ['', ' ', 0, 5, false, true]) {
    await invalid({ envId: 'e', model }, 'config.model', /model id/);
  }
  for (const model of [Symbol('x'), 1n, NaN, () => {}]) {
    await invalid({ envId: 'e', model }, 'config.model must be');
  }
  for (const id of [undefined, null, '', ' ', 4, {}, []]) {
    await invalid({ envId: 'e', model: { id } }, 'config.model.id', /non-empty string/);
  }
});

test('row 3: execute that is no function is refused and the tool named', async () => {
  for (const execute of ['rm', 5, {}, [], true]) {
    const broken = { name: 'my_tool', description: 'd', parameters: { type: 'object' }, execute };
    await invalid(offline({ tools: [broken] }), 'my_tool', 'execute', /function/);
  }
});

test('row 3: a tool without execute is a client tool', async () => {
  const client = { name: 'my_tool', description: 'd', parameters: { type: 'object' } };
  createAgent(offline({ tools: [client] }));
  createAgent(offline({ tools: [{ ...client, execute() {}, clientSide: true }] }));
  const neither = { ...client, clientSide: false };
  await invalid(offline({ tools: [neither] }), 'my_tool', 'clientSide', 'execute');
});

test('row 4: an unknown sandbox provider is not supported yet', async () => {
  await invalid(offline({ sandbox: { provider: 'docker' } }), 'sandbox.provider', /not supported/);
});

test('row 5: an AGS sandbox without any key is refused', async () => {
  for (const sandbox of [{ enabled: true }, { provider: 'ags-stateful' }, { apiKey: '' }]) {
    const words = [/sandbox\.apiKey/, 'TCB_API_KEY', 'CLOUDBASE_APIKEY', 'OAK_SANDBOX_API_KEY'];
    await invalid(offline({ sandbox }), ...words);
  }
  await unbuilt(offline({ sandbox: { apiKey: 'k' } }), 'sandbox');
});

test('row 6: cwd and workspaceRoot must be one directory', async () => {
  const sandbox = { provider: 'local', workspaceRoot: '/tmp/b' };
  await contradictory(offline({ cwd: '/tmp/a', sandbox }), /must be the same directory/);
  await unbuilt(offline({ cwd: '/tmp/x/../b/', sandbox }), 'config.cwd');
});

test('row 7: storage that is neither object nor provider is refused', async () => {
  for (const storage of ['cloudbase', 5, true, [], () => {}]) {
    await invalid(offline({ storage }), 'config.storage');
  }
  class Provider {
    resolveAttachment() {}
  }
  await unbuilt(offline({ storage: new Provider() }), 'config.storage');
  createAgent(offline({ storage: { enabled: false } }));
});

test('row 8: a storage provider other than cloudbase is not supported yet', async () => {
  await invalid(offline({ storage: { provider: 's3' } }), 'storage.provider', /not supported yet/);
});

test('row 9: a storage configuration requires credentials', async () => {
  await invalid(offline({ storage: {} }), /requires AgentConfig\.credentials/);
  await invalid(offline({ storage: { enabled: true } }), /requires AgentConfig\.credentials/);
});

test('row 10: the session provider is cloudbase or self, and fits the database', async () => {
  await invalid(offline({ session: { provider: 'aws' } }), 'session.provider', 'cloudbase, self');
  const pairs = [
    { provider: 'cloudbase', database: 'memory' },
    { provider: 'self', database: 'flexdb' },
  ];
  for (const session of pairs) await invalid(offline({ session }), 'session.database', 'provider');
});

test('row 11: mongo and mysql are reserved, other databases unknown', async () => {
  for (const database of ['mongo', 'mysql']) {
    await invalid(offline({ session: { database } }), /reserved for future/, /not supported yet/);
  }
  await invalid(
    offline({ session: { database: 'oracle' } }),
    'flexdb, memory, file, sqlite, pgsql',
  );
  await invalid(offline({ session: { database: 'sqlite' } }), 'session.path');
  await invalid(offline({ session: { database: 'pgsql' } }), 'session.url');
  await unbuilt(offline({ session: { database: 'flexdb' } }), 'session.database');
  const credentials = { accessKey: 'k' };
  for (const session of [
    { database: 'memory' },
    { database: 'sqlite', path: 'x', provider: 'self' },
  ]) {
    createAgent(offline({ session }));
    createAgent(offline({ session: { ...session, enabled: true }, storage: { enabled: false } }));
  }
  await unbuilt(offline({ credentials }), 'credentials');
});

test('row 12: session.enabled needs credentials or a key', async () => {
  const config = { envId: 'e', model: 'glm', session: { enabled: true } };
  await invalid(config, /requires AgentConfig\.credentials/);
  await unbuilt({ ...config, apiKey: 'k' }, 'session');
  createAgent({ ...config, session: { enabled: false } });
  createAgent({ ...config, session: {} });
});

test('row 13: userMemory needs credentials or a key in the environment', async () => {
  for (const userMemory of [true, { enabled: true }]) {
    await invalid(offline({ userMemory }), 'userMemory', 'credentials');
  }
  for (const userMemory of [false, {}, { enabled: false }]) createAgent(offline({ userMemory }));
});

test('row 14: startSession requires a userId', async () => {
  const agent = createAgent(offline());
  for (const options of [{ userId: undefined }, { userId: null }, { userId: '' }, { userId: 5 }]) {
    const error = await errorOf(agent.startSession(options));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'userId');
  }
  for (const options of [undefined, null, 'ann', 5, [], () => {}]) {
    const error = await errorOf(agent.startSession(options));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'startSession');
  }
});

test('row 15: a sandbox runtime must have acquire', async () => {
  for (const runtime of ['local', 5, {}, [], { acquire: 5 }]) {
    await invalid(offline({ sandbox: { runtime } }), 'sandbox.runtime', 'acquire');
  }
  await unbuilt(offline({ sandbox: { runtime: { backend: 'x', acquire() {} } } }), 'sandbox');
});

test('row 17: resumeSession without a store is a missing resource', async () => {
  const agent = createAgent(offline());
  for (const reference of ['no-such-id', '{"conversationId":"x","schema":"oak/v1/sessionRef"}']) {
    const error = await errorOf(agent.resumeSession(reference));
    assertRefused(error, ResourceError, 'E_RESOURCE', /session\.store/);
  }
  for (const reference of [undefined, null, '', 5, {}]) {
    const error = await errorOf(agent.resumeSession(reference));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'resumeSession');
  }
});

test('row 18: a missing API key is told during send', async () => {
  const agent = createAgent({ envId: 'e', model: 'glm' });
  const session = await agent.startSession({ userId: 'u' });
  const elements = await collect(session.send('hi'));
  assertEnd(elements, { stopReason: 'error' });
  const { level, code, name, message } = elements.at(-2);
  assert.deepEqual([level, code, name], ['error', 'E_RESOURCE', 'ResourceError']);
  assert.match(message, /no API key found/i);
  for (const call of [() => session.prompt('x'), () => agent.prompt('x')]) {
    assertRefused(await errorOf(call), ResourceError, 'E_RESOURCE', /no API key found/i);
  }
});

test('row 19: cwd cannot be the ~/.claude of the host, also through a link', async (t) => {
  const home = mkdtempSync(join(tmpdir(), 'oak-home-'));
  const before = process.env.HOME;
  t.after(() => {
    process.env.HOME = before;
    rmSync(home, { recursive: true });
  });
  process.env.HOME = home;
  mkdirSync(join(home, '.claude', 'skills'), { recursive: true });
  symlinkSync(join(home, '.claude'), join(home, 'link'));
  for (const path of ['.claude', '.claude/skills', 'link', 'link/skills', 'x/../.claude']) {
    await invalid(offline({ cwd: join(home, path) }), /cannot point at host/);
  }
  await unbuilt(offline({ cwd: join(home, 'project') }), 'cwd');
});

test('row 20: bad MCP servers are named with the missing field', async () => {
  const cases = [
    [5, 'object'],
    [{}, 'command'],
    [{ type: 'stdio', command: '' }, 'command'],
    [{ type: 'http' }, 'url'],
    [{ type: 'sse', url: '' }, 'url'],
    [{ type: 'sdk', instance: {} }, 'name'],
    [{ type: 'sdk', name: 'x' }, 'instance'],
    [{ type: 'carrier-pigeon' }, 'stdio, http, sse, sdk'],
  ];
  for (const [server, word] of cases) {
    await invalid(offline({ mcpServers: { weather: server } }), 'mcpServers.weather', word);
  }
  for (const name of ['sandbox', 'cloudbase', 'custom']) {
    await invalid(offline({ mcpServers: { [name]: { command: 'x' } } }), name);
  }
  createAgent(offline({ mcpServers: {} }));
});

test('row 21: a session store must have append and load', async () => {
  for (const store of ['x', 5, {}, { append() {} }, { load() {} }, { append: 1, load: 2 }]) {
    const lacking = /must be an object|append|load/;
    await invalid(offline({ session: { store } }), 'session.store', lacking);
    await invalid(offline({ sessionStore: store }), 'sessionStore', lacking);
  }
  class Store {
    append() {}
    load() {}
  }
  createAgent(offline({ session: { store: new Store() } }));
  createAgent(offline({ session: { store: { save() {}, load() {} } } }));
  await invalid(offline({ session: { store: { save() {} } } }), 'session.store', 'load');
});

test('row 22: snapshots need a sandbox that supports them', async () => {
  const runtime = { backend: 'mine', acquire() {} };
  const sandbox = { runtime, workspaceSnapshot: 'enabled' };
  await contradictory(offline({ sandbox }), /does not support snapshot/);
  const local = { provider: 'local', workspaceSnapshot: 'enabled' };
  await contradictory(offline({ sandbox: local }), /does not support snapshot/);
  await unbuilt(offline({ sandbox: { ...local, snapshotStore: { type: 'fs', path: '/x' } } }), 's');
});

test('row 23: snapshots need the scope shared', async () => {
  const sandbox = { apiKey: 'k', scope: 'session' };
  await contradictory(offline({ sandbox }), /scope='shared'/);
  await unbuilt(offline({ sandbox: { ...sandbox, workspaceSnapshot: 'disabled' } }), 'sandbox');
  await invalid(offline({ sandbox: { apiKey: 'k', scope: 'global' } }), 'session, shared');
});

test('row 24: attachments without a storage are refused', async () => {
  const session = await createAgent(offline()).startSession({ userId: 'u' });
  const input = { type: 'message', content: 'x', attachments: [{ type: 'url', url: 'http://a' }] };
  const error = await errorOf(session.send(input).next());
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', /storage/);
});

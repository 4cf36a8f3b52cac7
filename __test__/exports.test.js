/** What the package gives to programs. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import * as entry from '../index.js';
import { offline, runClean } from './support/boundary.js';

const NAMES = [
  'AcpStreamAdapter',
  'CloudBaseSessionStore',
  'ConfigError',
  'FileSessionStore',
  'HookError',
  'InMemoryClientToolStore',
  'InMemoryDriver',
  'InvalidConfigError',
  'KernelError',
  'McpError',
  'ModelError',
  'NotImplementedError',
  'ResourceError',
  'SandboxChecker',
  'SandboxDeniedError',
  'SandboxError',
  'SandboxPathNormalizer',
  'SessionError',
  'SessionStoreError',
  'StorageError',
  'VERSION',
  'createAgent',
  'createFileSessionStore',
  'createSdkMcpServer',
  'encodeSessionKey',
  'openSessionStore',
  'toSessionMessage',
  'tool',
];
const PACKAGE = '@cloudbase/open-agent-kernel';
const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

test('the entry exports exactly these names', () => {
  assert.deepEqual(Object.keys(entry).sort(), NAMES);
});

test('VERSION is the version of the package', () => {
  assert.equal(entry.VERSION, manifest.version);
});

test('the package can be required, and is one module with the import', async () => {
  const source = `
    import { createRequire } from 'node:module';
    import * as imported from '${PACKAGE}';
    const required = createRequire(import.meta.url)('${PACKAGE}');
    const same = Object.keys(imported).every((name) => imported[name] === required[name]);
    console.log(JSON.stringify({ names: Object.keys(imported).sort(), same }));
  `;
  const flags = process.versions.node.startsWith('20.') ? ['--no-warnings'] : [];
  const { names, same } = JSON.parse(await runClean(source, { flags }));
  assert.deepEqual(names, NAMES);
  assert.equal(same, true);
});

test('the sub-paths resolve, others do not', async () => {
  const source = `
    const { startEmulator, text, toolCall } = await import('${PACKAGE}/testing');
    const { createRequire } = await import('node:module');
    const { version } = createRequire(import.meta.url)('${PACKAGE}/package.json');
    let inner = 'resolved';
    try {
      await import('${PACKAGE}/js/native.js');
    } catch ({ code }) {
      inner = code;
    }
    const kinds = [startEmulator, text, toolCall].map((value) => typeof value);
    console.log(JSON.stringify({ kinds, version, inner }));
  `;
  const { kinds, version, inner } = JSON.parse(await runClean(source));
  assert.deepEqual(kinds, ['function', 'function', 'function']);
  assert.equal(version, manifest.version);
  assert.equal(inner, 'ERR_PACKAGE_PATH_NOT_EXPORTED');
});

test('createAgent gives an agent with an id, a name and the calls', async () => {
  const agent = entry.createAgent(offline({ name: 'helper' }));
  assert.match(agent.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(agent.name, 'helper');
  for (const call of ['startSession', 'resumeSession', 'prompt', 'close']) {
    assert.equal(typeof agent[call], 'function', call);
  }
  const other = entry.createAgent(offline());
  assert.equal(other.name, undefined);
  assert.notEqual(other.id, agent.id);
});

test('a session has an id, its user and the calls', async () => {
  const agent = entry.createAgent(offline());
  const session = await agent.startSession({ userId: 'ann' });
  assert.match(session.id, /^[0-9a-f-]{36}$/);
  assert.equal(session.userId, 'ann');
  const calls = ['send', 'prompt', 'abort', 'close', 'settled', 'getState', 'flush'];
  calls.push('getHistory', 'clearHistory', 'respondToolUse', 'respondAskUser');
  for (const call of calls) assert.equal(typeof session[call], 'function', call);
  const state = { conversationId: session.id, schema: 'oak/v1/sessionRef' };
  assert.deepEqual(JSON.parse(await session.getState()), state);
  const named = await agent.startSession({ userId: 'ann', conversationId: 'not a uuid' });
  assert.equal(named.id, 'not a uuid');
});

test('documented calls that do not exist yet reject as not built', async () => {
  const session = await entry.createAgent(offline()).startSession({ userId: 'ann' });
  const streams = ['respondApproval'];
  const promises = ['snapshotWorkspace', 'restoreWorkspace'];
  for (const call of [...streams, ...promises, 'getRestoreStatus']) {
    const result = session[call]({});
    await assert.rejects(streams.includes(call) ? result.next() : result, (error) => {
      assert.ok(error instanceof entry.NotImplementedError);
      assert.equal(error.code, 'E_NOT_IMPLEMENTED');
      return error.message.includes(`Session.${call}()`);
    });
  }
});

test('importing does nothing: no output, nothing that keeps the process alive', async () => {
  const source = `
    const before = process.getActiveResourcesInfo().length;
    await import('${PACKAGE}');
    console.log(process.getActiveResourcesInfo().length - before);
  `;
  assert.equal(await runClean(source), '0');
});

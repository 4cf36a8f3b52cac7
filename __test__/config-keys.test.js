/** Every documented key: what is accepted, what is refused and how. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError, NotImplementedError, createAgent } from '../index.js';
import { assertRefused, errorOf, offline, tool } from './support/boundary.js';

for (const name of ['TCB_API_KEY', 'CLOUDBASE_APIKEY', 'OAK_SANDBOX_API_KEY', 'OAK_EMULATOR_HUB']) {
  delete process.env[name];
}

/** `a.b` of the base configuration set to a value. */
function withKey(path, value) {
  const [outer, inner] = path.split('.');
  const base = offline();
  if (!inner) return { ...base, [outer]: value };
  return { ...base, [outer]: { ...base[outer], [inner]: value } };
}

const NOT_STRING = [5, true, {}, []];
const NOT_BOOLEAN = ['yes', 1, {}, []];
const STORE = { append() {}, load() {} };
const NOT_STORE = ['x', 5, {}, { append() {} }, { load() {} }, { append: 1, load: 2 }];
const NOT_COUNT = ['5', -1, 1.5, NaN, Infinity, -Infinity, true, {}, [], 1n, 1e300];
const NOT_OBJECT = ['x', 5, true, [], () => {}];

const BUILT = [
  ['name', ['x', ''], NOT_STRING],
  ['description', ['x'], NOT_STRING],
  ['metadata', [{}, { a: [1, { b: null }] }], NOT_OBJECT],
  ['apiKey', ['k', ''], NOT_STRING],
  ['systemPrompt', ['x', ''], NOT_STRING],
  ['stream', [true, false], NOT_BOOLEAN],
  ['streamExtras', [true, false], NOT_BOOLEAN],
  ['streamFormat', ['acp', 'acp-v1', 'acp-jsonrpc', 'events'], [5, {}, '', 'sse', 'ACP']],
  ['tools', [[], [tool('a')]], [{}, 'x', 5, true, [5], [null], ['x'], [[]]]],
  ['maxTurns', [0, 1, 250, 3.0], NOT_COUNT],
  ['limits', [{}], NOT_OBJECT],
  ['limits.maxTurns', [0, 1], NOT_COUNT],
  ['limits.maxTokensPerTurn', [0, 1000], NOT_COUNT],
  ['limits.maxMs', [0, 1000], NOT_COUNT],
  ['limits.firstByteMs', [0, 1000], NOT_COUNT],
  ['limits.idleMs', [0, 1000], NOT_COUNT],
  ['limits.requestMs', [0, 1000], NOT_COUNT],
  ['limits.toolTimeoutMs', [0, 1000], NOT_COUNT],
  ['limits.toolConcurrency', [1, 10], [0, ...NOT_COUNT]],
  ['limits.prices', [{ input: 1, output: 2 }], [...NOT_OBJECT, {}, { input: 1, output: '2' }]],
  ['hooks', [{}, { onToolStart() {} }], ['x', 5, true]],
  ['hooks.onUserMessage', [() => {}], ['x', 5, true, {}]],
  ['hooks.onToolStart', [() => {}], ['x', 5, true, {}]],
  ['hooks.onToolEnd', [() => {}], ['x', 5, true, {}]],
  ['hooks.onAgentMessage', [() => {}], ['x', 5, true, {}]],
  ['hooks.onSessionStart', [() => {}], ['x', 5, true, {}]],
  ['hooks.onSessionEnd', [() => {}], ['x', 5, true, {}]],
  ['proxy', [false, 'http://p:1', 'p:1', 'socks5://p:1'], [true, 5, {}, 'ftp://p', 'http://']],
  ['endpoints', [{}], NOT_OBJECT],
  ['endpoints.gateway', ['https://g.test/v1'], [5, {}, 'nowhere', 'ftp://g']],
  ['model.apiKey', ['', 'k'], NOT_STRING],
  ['model.apiBaseUrl', ['https://g.test/v1', ''], [5, {}, 'nowhere', 'file:///x']],
  ['model.protocol', ['anthropic', 'openai'], [5, {}, '', 'grpc']],
  ['model.thinking', [{ type: 'enabled', budget_tokens: 4096 }], ['x', 5, true, []]],
  ['model.headers', [{}, { 'x-team': 'a' }], [...NOT_OBJECT, { 'x-a': 5 }, { 'a b': 'c' }]],
  ['model.betas', [[], ['a', 'b']], ['x', 5, {}, [5], ['a\nb']]],
  ['model.options', [{}, { top_k: 5 }], [...NOT_OBJECT, { messages: [] }, { top_k: () => 5 }]],
  ['logger', [() => {}], ['x', 5, true]],
  ['onMetric', [() => {}], ['x', 5, true, {}]],
  ['telemetry', [() => {}], ['x', 5, true]],
  ['streamAdapter', [{ adapt() {} }], ['x', 5, {}, { adapt: 5 }]],
  ['model.maxTokens', [1, 64_000], [0, ...NOT_COUNT]],
  ['model.contextWindow', [200_000], [0, 10, ...NOT_COUNT]],
  ['model.temperature', [0, 0.5, 1], ['0.5', -0.1, NaN, Infinity, {}, true]],
  ['model.maxRetries', [0, 10], NOT_COUNT],
  ['model.restart', ['auto', 'never'], [5, true, '', 'always']],
  ['model.cacheMarks', [true, false], NOT_BOOLEAN],
  ['permissionMode', ['bypassPermissions'], [5, {}, '', 'yolo']],
  ['permissions', [{}], NOT_OBJECT],
  ['permissions.mode', ['bypassPermissions'], [5, {}, '', 'yolo']],
  ['permissions.tablePrefix', ['oak_'], NOT_STRING],
  ['permissions.approvalTimeoutMs', [0, 1000], NOT_COUNT],
  ['permissions.canUseToolTimeoutMs', [0, 1000], NOT_COUNT],
  ['session', [{}, { enabled: false }], NOT_OBJECT],
  ['session.enabled', [false], NOT_BOOLEAN],
  ['session.projectKey', ['p'], ['', ...NOT_STRING]],
  ['session.tablePrefix', ['t_'], ['', 'a-b', '1', ...NOT_STRING]],
  ['session.storeTimeoutMs', [0, 1000], NOT_COUNT],
  ['session.busyTimeoutMs', [0, 1000], NOT_COUNT],
  ['session.flush', ['batched', 'eager'], [5, true, '', 'never']],
  ['session.durability', ['process', 'fsync'], [5, true, '', 'rename']],
  ['session.onStoreFailure', ['fail', 'continue'], [5, true, '', 'ignore']],
  ['session.database', ['memory', 'file'], [5, '', 'oracle', 'mongo', 'sqlite']],
  ['session.store', [STORE], NOT_STORE],
  ['sessionStore', [STORE], NOT_STORE],
  ['sessionId', ['x'], ['', ...NOT_STRING]],
  ['continueRecentSession', [true, false], NOT_BOOLEAN],
  ['forkSession', [true, false], NOT_BOOLEAN],
  ['resumeSessionAt', ['x'], ['', ...NOT_STRING]],
  ['persistSession', [true, false], NOT_BOOLEAN],
  ['strictResume', [true, false], NOT_BOOLEAN],
  ['onUnknownOutcome', [() => {}], ['x', 5, {}]],
  ['sandbox', [{ enabled: false }], ['x', 5, true, []]],
  ['storage', [{ enabled: false }], ['x', 5, true]],
  ['userMemory', [false, {}], ['x', 5, []]],
  ['skills', [{}], NOT_OBJECT],
  ['skills.enabled', [], ['some', 5, true, [5]]],
  ['mcpServers', [{}], NOT_OBJECT],
  ['handoffs', [[]], []],
  ['askUser', [false, true, {}, { hint: false }], ['x', 5, []]],
  ['askUser.hint', [true, false], NOT_BOOLEAN],
  ['toolStore', [], [...NOT_OBJECT, {}]],
  ['runtime', ['native'], []],
  ['runtimeFallback', ['error'], []],
  ['allowHostTools', [false], []],
];

for (const [path, good, bad] of BUILT) {
  test(`config.${path}: accepted and refused values`, async () => {
    for (const value of [...good, undefined, null]) createAgent(withKey(path, value));
    for (const value of bad) {
      const error = await errorOf(() => createAgent(withKey(path, value)));
      assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', path.split('.').at(-1));
    }
  });
}

const approve = () => true;
const UNBUILT = [
  ['endpoints.admin', ['https://a.test']],
  ['endpoints.cloudApi', ['https://a.test']],
  ['endpoints.cos', ['https://a.test']],
  ['endpoints.download', ['https://a.test']],
  ['credentials', [{ accessKey: 'k' }, { secretId: 'i', secretKey: 'k' }]],
  ['permissionMode', ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto']],
  ['permissions.mode', ['default', 'acceptEdits', 'plan', 'dontAsk', 'auto']],
  ['permissions.requireApproval', ['Bash', ['a', 'b'], approve]],
  ['permissions.store', [{ put() {} }]],
  ['permissions.canUseTool', [approve]],
  ['permissions.allow', [['Bash']]],
  ['permissions.deny', [['Bash']]],
  ['permissions.ask', [['Bash']]],
  ['permissions.onPermissionUpdate', [approve]],
  ['canUseTool', [approve]],
  ['handoffs', [[{}]]],
  ['skills.enabled', ['all', ['a']]],
  ['hookRegistry', [{}]],
  ['agents', [{}]],
  ['outputFormat', [{}]],
  ['memoryKey', ['x']],
  ['attachments', [{ fetch: true }]],
  ['runtime', ['opencode']],
  ['runtimeFallback', ['native']],
  ['allowHostTools', [true]],
  ['records', [{}]],
];

for (const [path, values] of UNBUILT) {
  test(`config.${path}: refused as not built`, async () => {
    createAgent(withKey(path, undefined));
    for (const value of values) {
      const error = await errorOf(() => createAgent(withKey(path, value)));
      const word = path === 'credentials' ? 'credentials' : '';
      assertRefused(error, NotImplementedError, 'E_NOT_IMPLEMENTED', 'not built yet', word);
    }
  });
}

test('config.model may be a list, the fallbacks after the first', async () => {
  for (const model of [['a'], ['a', 'b'], [{ id: 'a', apiKey: 'k' }, 'b']]) {
    createAgent(offline({ model }));
  }
  for (const model of [[], [5], [''], [['a']], ['a', {}], ['a', null]]) {
    const error = await errorOf(() => createAgent(offline({ model })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.model');
  }
});

test('values that JSON cannot say do not get into request bodies', async () => {
  for (const odd of [() => 5, new Map(), 5n, Symbol('x'), NaN]) {
    for (const setting of [{ options: { a: { b: [odd] } } }, { thinking: { type: 'x', a: odd } }]) {
      const error = await errorOf(() => createAgent(offline({ model: { id: 'glm', ...setting } })));
      assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.model');
    }
  }
});

test('unusable credentials are refused at createAgent', async () => {
  for (const credentials of [{}, { secretId: 'x' }, { secretKey: 'x' }, { accessKey: '' }, 5]) {
    const error = await errorOf(() => createAgent(offline({ credentials })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'credentials');
  }
  const credentials = { accessKey: 'k' };
  createAgent(offline({ credentials, session: { enabled: false } }));
});

test('FC-E5: settings of the session are checked, also while nothing is stored', async () => {
  const cases = {
    flush: ['sometimes', 5],
    durability: ['maybe', 5],
    onStoreFailure: ['panic', 5],
    tablePrefix: NOT_STRING,
    projectKey: NOT_STRING,
    storeTimeoutMs: NOT_COUNT,
    busyTimeoutMs: NOT_COUNT,
  };
  for (const [key, values] of Object.entries(cases)) {
    for (const value of values) {
      const error = await errorOf(() => createAgent(offline({ session: { [key]: value } })));
      assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', `session.${key}`);
    }
  }
});

test('FC-E5: a refused word lists the valid ones', async () => {
  const cases = [
    [{ streamFormat: 'x' }, 'acp, acp-v1, acp-jsonrpc, events'],
    [{ permissionMode: 'x' }, 'default, acceptEdits, bypassPermissions, plan, dontAsk, auto'],
    [{ model: { id: 'a', restart: 'x' } }, 'auto, never'],
    [{ model: { id: 'a', protocol: 'x' } }, 'anthropic, openai'],
  ];
  for (const [config, words] of cases) {
    const error = await errorOf(() => createAgent({ ...offline(), ...config }));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', words);
  }
});

test('one setting under two names must be given once, or equally', async () => {
  const pairs = [
    [
      { maxTurns: 1, limits: { maxTurns: 2 } },
      { maxTurns: 2, limits: { maxTurns: 2 } },
    ],
    [{ apiKey: 'a' }, { apiKey: 'k' }],
  ];
  for (const [different, equal] of pairs) {
    const error = await errorOf(() => createAgent(offline(different)));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'differ', 'once');
    createAgent(offline(equal));
  }
  const modes = { permissionMode: 'plan', permissions: { mode: 'default' } };
  const error = await errorOf(() => createAgent(offline(modes)));
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'differ');
});

test('a cost limit needs prices', async () => {
  const error = await errorOf(() => createAgent(offline({ limits: { maxCost: 1 } })));
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'maxCost', 'prices');
  const prices = { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 };
  assert.ok(createAgent(offline({ limits: { maxCost: 0.5, prices } })));
});

/** Configurations and inputs that nobody should write: a typed refusal, never a crash. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError, KernelError, createAgent } from '../index.js';
import { assertRefused, errorOf, nowhere, offline, setUp, tool } from './support/boundary.js';

const BOOM = new Error('boom');
const thrower = (key) =>
  Object.defineProperty({}, key, {
    enumerable: true,
    get() {
      throw BOOM;
    },
  });
const withThrower = (object, key) =>
  Object.defineProperties(object, Object.getOwnPropertyDescriptors(thrower(key)));

const invalid = async (config, ...words) => {
  const error = await errorOf(() => createAgent(config));
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', ...words);
  return error;
};

test('a getter that throws is refused, named, and kept as the cause', async () => {
  const cases = [
    [withThrower(offline(), 'systemPrompt'), 'config.systemPrompt'],
    [withThrower({ model: 'm' }, 'envId'), 'config.envId'],
    [offline({ model: withThrower({ id: 'x' }, 'apiKey') }), 'config.model.apiKey'],
    [offline({ metadata: { deep: [thrower('x')] } }), 'config.metadata.deep[0].x'],
    [offline({ tools: [withThrower(tool('a'), 'name')] }), 'config.tools[0].name'],
    [offline({ tools: [withThrower(tool('a'), 'execute')] }), 'config.tools[0].execute'],
    [offline({ hooks: thrower('onToolStart') }), 'config.hooks.onToolStart'],
  ];
  for (const [config, path] of cases) {
    const error = await invalid(config, path);
    assert.equal(error.cause, BOOM);
  }
});

test('a method of a class that throws when it is read is refused', async () => {
  class Broken {
    get execute() {
      throw BOOM;
    }
  }
  const broken = Object.assign(new Broken(), {
    name: 'a',
    description: '',
    parameters: { type: 'object' },
  });
  await invalid(offline({ tools: [broken] }), 'config.tools[0].execute');
  class Hooks {
    get onToolEnd() {
      throw BOOM;
    }
  }
  await invalid(offline({ hooks: new Hooks() }), 'config.hooks.onToolEnd');
});

test('a Proxy that throws at every touch is refused', async () => {
  const fail = () => {
    throw BOOM;
  };
  const traps = Object.fromEntries(
    Object.getOwnPropertyNames(Reflect)
      .filter((name) => typeof Reflect[name] === 'function')
      .map((name) => [name, fail]),
  );
  const hostile = new Proxy({}, traps);
  const revoked = Proxy.revocable({}, {});
  revoked.revoke();
  for (const value of [hostile, revoked.proxy]) {
    for (const config of [
      value,
      offline({ model: value }),
      offline({ tools: value }),
      offline({ tools: [value] }),
      offline({ tools: [tool('a', () => 1, { parameters: value })] }),
      offline({ hooks: value }),
      offline({ metadata: value }),
      offline({ metadata: { deep: [value] } }),
      offline({ limits: value }),
    ]) {
      await invalid(config);
    }
  }
});

test('a Proxy that behaves is as good as its target', async (t) => {
  const { emulator } = await setUp(t);
  const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey };
  const config = new Proxy({ envId: 'e', model: new Proxy(model, {}) }, {});
  assert.equal((await createAgent(config).prompt('hi')).text, 'Hello.');
});

test('cycles are refused; one object in two places is fine', async () => {
  const config = offline();
  config.metadata = { a: { b: [config] } };
  await invalid(config, 'contains itself');
  const parameters = { type: 'object', properties: {} };
  parameters.properties.self = parameters;
  await invalid(offline({ tools: [tool('a', () => 1, { parameters })] }), 'contains itself');
  const shared = { x: 1 };
  createAgent(offline({ metadata: { a: shared, b: shared, c: [shared, shared] } }));
});

test('enormous values are refused quickly', async () => {
  let deep = {};
  for (let at = 0; at < 100_000; at += 1) deep = { deep };
  const wide = Object.fromEntries(Array.from({ length: 200_000 }, (_, at) => [`k${at}`, at]));
  const text = 'x'.repeat(100 << 20);
  for (const value of [deep, wide, new Array(200_000).fill(1), { text }]) {
    await invalid(offline({ metadata: value }), 'config.metadata');
  }
  await invalid(offline({ systemPrompt: text }), 'config.systemPrompt');
  await invalid(offline({ tools: new Array(200_000).fill(tool('a')) }), 'config');
  const parameters = { type: 'object', properties: { deep } };
  await invalid(offline({ tools: [tool('a', () => 1, { parameters })] }), 'config.tools[0]');
});

test('values that JSON cannot say are refused where they count', async () => {
  for (const value of [1n, Symbol('x'), NaN, Infinity, -Infinity, () => {}, new Date(), /x/]) {
    await invalid(offline({ maxTurns: value }), 'config.maxTurns');
    await invalid(offline({ limits: { idleMs: value } }), 'config.limits.idleMs');
    await invalid(offline({ name: value }), 'config.name');
    await invalid(offline({ stream: value }), 'config.stream');
  }
  for (const value of [new Map(), new Date(), /x/, new Error('x'), new Uint8Array(2), 5n]) {
    await invalid(offline({ limits: value }), 'config.limits');
    await invalid(offline({ model: value }), 'config.model');
  }
});

test('keys of a prototype do not count as given', () => {
  Object.prototype.maxTurns = 'polluted';
  Object.prototype.systemPrompt = 5;
  try {
    createAgent(offline());
  } finally {
    delete Object.prototype.maxTurns;
    delete Object.prototype.systemPrompt;
  }
  createAgent({ ...offline(), ...JSON.parse('{"__proto__": {"maxTurns": "x"}}') });
});

test('a forged mark of a function harms nobody', async (t) => {
  const forged = { '\0oak': { type: 'function', what: 'a function', index: 4_000_000_000 } };
  const { session } = await setUp(t, { hooks: { onUserMessage() {} } });
  assert.equal((await session.prompt('hi')).text, 'Hello.');
  try {
    createAgent(offline({ tools: [tool('a', forged)], metadata: forged }));
  } catch (error) {
    assert.ok(error instanceof KernelError);
  }
});

test('half a surrogate pair in the configuration becomes a whole character', async (t) => {
  const { session, emulator } = await setUp(t, { systemPrompt: 'a\ud83d b\udc00', name: '\ud800' });
  await session.prompt('c\udfff');
  const { system, messages } = emulator.requests[0].body;
  assert.match(JSON.stringify(system), /a\ufffd b\ufffd/);
  assert.match(JSON.stringify(messages), /c\ufffd/);
});

test('an input that is no message is refused on the first next', async () => {
  const session = await createAgent(nowhere()).startSession({ userId: 'u' });
  const cycle = { type: 'message', content: 'x' };
  cycle.self = cycle;
  const inputs = [
    ...[undefined, null, '', '  ', '\n', 5, true, [], {}, 1n, Symbol('x'), () => {}, NaN],
    ...[cycle, { type: 'x' }, { type: 'message' }, { type: 'message', content: '' }],
    ...[
      { type: 'message', content: 5 },
      { type: 'message', content: 'x', attachments: 5 },
    ],
    ...[{ type: 'tool_result' }, thrower('type'), { toJSON: () => 5 }],
  ];
  for (const input of inputs) {
    const stream = session.send(input);
    const error = await errorOf(stream.next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'send');
    assert.deepEqual(await stream.next(), { value: undefined, done: true });
    assertRefused(await errorOf(session.prompt(input)), InvalidConfigError, 'E_INVALID_CONFIG');
  }
});

test('options of a wrong shape are refused', async () => {
  const agent = createAgent(nowhere());
  const session = await agent.startSession({ userId: 'u' });
  for (const options of ['x', 5, true, { signal: 'x' }, { signal: {} }, thrower('signal')]) {
    const error = await errorOf(() => session.send('hi', options).next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG');
    assert.ok((await errorOf(() => session.prompt('hi', options))) instanceof InvalidConfigError);
    assert.ok((await errorOf(() => agent.prompt('hi', options))) instanceof InvalidConfigError);
  }
  for (const options of [
    { model: 5 },
    { maxTokens: 'x' },
    { limits: 5 },
    { limits: { maxMs: NaN } },
    { traceparent: 5 },
  ]) {
    const error = await errorOf(() => session.send('hi', options).next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', Object.keys(options)[0]);
  }
  for (const options of [{ runtime: 'x' }]) {
    const error = await errorOf(() => session.send('hi', options).next());
    assert.equal(error.code, 'E_NOT_IMPLEMENTED');
  }
  for (const deadlineMs of ['x', -1, 1.5, NaN, Infinity, {}, 2 ** 40]) {
    const error = await errorOf(agent.close({ deadlineMs }));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'deadlineMs');
  }
});

test('D23, FC-C7: ids are checked before anything happens', async () => {
  const agent = createAgent(nowhere());
  for (const id of ['', '\0', 'a\nb', '\u0085', 'x'.repeat(513), 'ä'.repeat(257), 5, {}, []]) {
    const user = await errorOf(agent.startSession({ userId: id }));
    assertRefused(user, InvalidConfigError, 'E_INVALID_CONFIG', 'userId');
    const options = { userId: 'u', conversationId: id };
    const conversation = await errorOf(agent.startSession(options));
    assertRefused(conversation, InvalidConfigError, 'E_INVALID_CONFIG', 'conversationId');
    assert.ok((await errorOf(agent.prompt('x', { userId: id }))) instanceof InvalidConfigError);
  }
  for (const id of ['../../x', 'a/b', '*', '. ', 'é'.repeat(256), '小明', 'a|b%c']) {
    const session = await agent.startSession({ userId: id, conversationId: id });
    assert.deepEqual([session.id, session.userId], [id, id]);
  }
});

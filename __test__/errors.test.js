/** The error classes and what errors carry. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, toolCall } from '../emulator/index.js';
import * as entry from '../index.js';
import { native } from '../js/native.js';
import { assertEnd, collect, errorOf, offline, setUp, tool } from './support/boundary.js';

const { HookError, InvalidConfigError, KernelError, ModelError, SessionError, createAgent } = entry;
const SUBCLASSES = Object.keys(entry).filter(
  (name) => /.Error$/.test(name) && name !== 'KernelError',
);

test('every class is an Error below KernelError, named as it is exported', () => {
  for (const name of SUBCLASSES) {
    const { prototype } = entry[name];
    assert.ok(prototype instanceof KernelError, name);
    assert.ok(prototype instanceof Error, name);
    assert.equal(entry[name].name, name);
  }
});

test('every error of the core has a class that is exported and a code of its own', () => {
  const table = native.errorTable();
  assert.ok(table.length >= 20);
  for (const [code, name] of table) {
    assert.match(code, /^E_[A-Z_]+$/);
    assert.equal(typeof entry[name], 'function', name);
  }
  assert.equal(new Set(table.map(([code]) => code)).size, table.length);
});

test('an error made by a program has the code of its class', () => {
  const made = [
    [new entry.InvalidConfigError('x'), 'E_INVALID_CONFIG'],
    [new entry.ConfigError('x'), 'E_CONFIG'],
    [new entry.ResourceError('x'), 'E_RESOURCE'],
    [new entry.StorageError('x'), 'E_STORAGE'],
    [new entry.SandboxError('x'), 'E_SANDBOX'],
    [new entry.NotImplementedError('x'), 'E_NOT_IMPLEMENTED'],
  ];
  for (const [error, code] of made) {
    assert.equal(error.code, code);
    assert.equal(error.name, error.constructor.name);
    assert.match(String(error), new RegExp(`^${error.name}: x`));
    assert.equal(error.retryable, false);
  }
});

test('an error of the core is a real instance with a stack that helps', async () => {
  function inMyProgram() {
    createAgent({});
  }
  const error = await errorOf(inMyProgram);
  assert.ok(error instanceof InvalidConfigError && error instanceof Error);
  assert.equal(error.constructor, InvalidConfigError);
  assert.equal(error.name, 'InvalidConfigError');
  assert.match(error.stack, /^InvalidConfigError: config\.envId/);
  assert.match(error.stack, /inMyProgram/);
  assert.equal(Object.prototype.toString.call(error), '[object Error]');
  const { code, retryable } = JSON.parse(JSON.stringify(error));
  assert.deepEqual([code, retryable], ['E_INVALID_CONFIG', false]);
  assert.equal('status' in error || 'requestId' in error || 'details' in error, false);
});

const CASES = [
  [400, 'E_MODEL_REQUEST', false],
  [401, 'E_MODEL_AUTH', false],
  [403, 'E_MODEL_AUTH', false],
  [404, 'E_MODEL_NOT_FOUND', false],
  [413, 'E_MODEL_REQUEST', false],
  [422, 'E_MODEL_REQUEST', false],
  [429, 'E_MODEL_RATE_LIMIT', true],
  [500, 'E_MODEL_SERVER', true],
  [503, 'E_MODEL_SERVER', true],
  [529, 'E_MODEL_OVERLOADED', true],
];

for (const [status, code, retryable] of CASES) {
  test(`D8: HTTP ${status} of the gateway is ${code}, as rejection and as element`, async (t) => {
    const rules = [{ reply: httpError(status, { type: 'api_error', message: 'no luck today' }) }];
    const config = (emulator) => ({
      id: 'glm',
      apiBaseUrl: emulator.gatewayUrl,
      apiKey: emulator.apiKey,
      maxRetries: 0,
    });
    const { emulator } = await setUp(t, { rules });
    const agent = createAgent({ envId: 'e', model: config(emulator) });
    const session = await agent.startSession({ userId: 'u' });
    const error = await errorOf(session.prompt('hi'));
    assert.ok(error instanceof ModelError);
    assert.deepEqual([error.code, error.status, error.retryable], [code, status, retryable]);
    assert.equal(error.requestId, emulator.requests.at(-1).id);
    assert.match(error.message, /no luck today/);
    const elements = await collect(session.send('hi'));
    assertEnd(elements, { stopReason: 'error' });
    const log = elements.at(-2);
    assert.deepEqual(
      [log.sessionUpdate, log.level, log.code, log.name, log.status, log.retryable, log.requestId],
      ['log', 'error', code, 'ModelError', status, retryable, emulator.requests.at(-1).id],
    );
    await agent.close();
  });
}

test('D18: an error after retries says how many attempts there were', async (t) => {
  const rules = [{ reply: httpError(500, { type: 'api_error', message: 'x' }) }];
  const { emulator } = await setUp(t, { rules });
  const model = {
    id: 'glm',
    apiBaseUrl: emulator.gatewayUrl,
    apiKey: emulator.apiKey,
    maxRetries: 1,
  };
  const error = await errorOf(createAgent({ envId: 'e', model }).prompt('hi'));
  assert.equal(error.details.attempts, 2);
  assert.equal(emulator.requests.length, 2);
});

test('D8: throwOnError rejects with the error after idle, once', async (t) => {
  const rules = [
    { reply: httpError(401, { type: 'authentication_error', message: 'who are you' }) },
  ];
  const { session } = await setUp(t, { rules });
  const stream = session.send('hi', { throwOnError: true });
  const elements = [];
  const error = await errorOf(async () => {
    for await (const element of stream) elements.push(element);
  });
  assertEnd(elements, { stopReason: 'error' });
  assert.equal(error.code, 'E_MODEL_AUTH');
  assert.equal(error.message, elements.at(-2).message);
  assert.deepEqual(await stream.next(), { value: undefined, done: true });
});

test('throwOnError changes nothing about a run that goes well', async (t) => {
  const { session } = await setUp(t);
  assertEnd(await collect(session.send('hi', { throwOnError: true })), { stopReason: 'end_turn' });
});

const CALL = [
  { when: { hasToolResult: true }, reply: '{{toolResult}}' },
  { reply: toolCall('x', {}) },
];

for (const name of ['onSessionStart', 'onUserMessage', 'onToolStart', 'onToolEnd']) {
  for (const thrown of [new RangeError('hook says no'), 'a string', { odd: true }, undefined]) {
    test(`a hook that throws fails the run; the cause is what was thrown: ${name}, ${typeof thrown}`, async (t) => {
      const hooks = {
        [name]() {
          throw thrown;
        },
      };
      const { session } = await setUp(t, { rules: CALL, tools: [tool('x')], hooks });
      const error = await errorOf(session.prompt('hi'));
      assert.ok(error instanceof HookError);
      assert.equal(error.code, 'E_HOOK');
      assert.ok(error.message.includes(name), error.message);
      assert.equal(error.cause, thrown);
      if (thrown instanceof Error) assert.match(error.message, /hook says no/);
    });
  }
}

test('errors of a session: busy is retryable, closed and owner are not', async (t) => {
  const { agent, session } = await setUp(t, { knobs: { stallAfter: 3 } });
  const stream = session.send('hi');
  await stream.next();
  const busy = await errorOf(session.send('again').next());
  assert.deepEqual([busy.code, busy.retryable], ['E_SESSION_BUSY', true]);
  await stream.return();
  const options = { userId: 'bob', conversationId: session.id };
  const owner = await errorOf(agent.startSession(options));
  assert.deepEqual([owner.code, owner.retryable], ['E_SESSION_OWNER', false]);
  assert.doesNotMatch(owner.message, /ann/);
  await session.close();
  const closed = await errorOf(session.send('hi').next());
  assert.deepEqual([closed.code, closed.retryable], ['E_SESSION_CLOSED', false]);
  for (const error of [busy, owner, closed]) assert.ok(error instanceof SessionError);
});

test('a rejection names the line of the program that asked', async () => {
  const agent = createAgent(offline());
  async function whereIAsked() {
    await agent.startSession({});
  }
  const { stack } = await errorOf(whereIAsked);
  assert.match(stack, /^InvalidConfigError: startSession/);
  assert.match(stack, /whereIAsked/);
});

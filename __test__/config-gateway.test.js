/** Where requests go and with which key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { InvalidConfigError, createAgent } from '../index.js';
import { assertRefused, errorOf, offline } from './support/boundary.js';

const KEYS = ['TCB_API_KEY', 'CLOUDBASE_APIKEY', 'OAK_EMULATOR_HUB'];
for (const name of KEYS) delete process.env[name];

/** The environment for one test; the tests of this file run one after the other. */
function setEnvironment(t, variables) {
  Object.assign(process.env, variables);
  t.after(() => Object.keys(variables).forEach((name) => delete process.env[name]));
}

async function openEmulator(t) {
  const emulator = await startEmulator({ apiKey: null, rules: [{ reply: 'Hello.' }] });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  return emulator;
}

/** The key that reaches the gateway. */
async function keySent(t, emulator, config, between = () => {}) {
  const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, ...config.model };
  const agent = createAgent({ envId: 'e', ...config, model });
  between();
  await agent.prompt('hi');
  await agent.close();
  return emulator.requests.at(-1).headers.authorization;
}

test('key order: model.apiKey, apiKey, TCB_API_KEY, CLOUDBASE_APIKEY', async (t) => {
  const emulator = await openEmulator(t);
  setEnvironment(t, { TCB_API_KEY: 'tcb', CLOUDBASE_APIKEY: 'cloudbase' });
  assert.equal(await keySent(t, emulator, { model: { apiKey: 'own' } }), 'Bearer own');
  assert.equal(await keySent(t, emulator, { apiKey: 'alias' }), 'Bearer alias');
  assert.equal(await keySent(t, emulator, {}), 'Bearer tcb');
  delete process.env.TCB_API_KEY;
  assert.equal(await keySent(t, emulator, {}), 'Bearer cloudbase');
});

test('an empty key is no key', async (t) => {
  const emulator = await openEmulator(t);
  setEnvironment(t, { TCB_API_KEY: '', CLOUDBASE_APIKEY: 'cloudbase' });
  assert.equal(await keySent(t, emulator, { apiKey: '' }), 'Bearer cloudbase');
  assert.equal(await keySent(t, emulator, { model: { apiKey: '' } }), 'Bearer cloudbase');
  assert.equal(
    await keySent(t, emulator, { apiKey: 'alias', model: { apiKey: '' } }),
    'Bearer alias',
  );
});

test('two different keys are refused, and neither is shown', async () => {
  const config = { envId: 'e', apiKey: 'first-key', model: { id: 'glm', apiKey: 'second-key' } };
  const error = await errorOf(() => createAgent(config));
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'apiKey', 'differ');
  assert.doesNotMatch(JSON.stringify(error) + error.message, /first-key|second-key/);
});

test('the environment is read at createAgent, not later', async (t) => {
  const emulator = await openEmulator(t);
  setEnvironment(t, { TCB_API_KEY: 'before' });
  const sent = await keySent(t, emulator, {}, () => (process.env.TCB_API_KEY = 'after'));
  assert.equal(sent, 'Bearer before');
});

test('the Messages path is appended to the base address, with or without a slash', async (t) => {
  const emulator = await openEmulator(t);
  for (const tail of ['', '/']) {
    await keySent(t, emulator, { model: { apiBaseUrl: emulator.gatewayUrl + tail, apiKey: 'k' } });
    const { pathname } = new URL(emulator.requests.at(-1).path, emulator.url);
    assert.equal(pathname, '/v1/ai/cloudbase/v1/messages');
  }
});

test('endpoints.gateway serves, and model.apiBaseUrl wins over it', async (t) => {
  const emulator = await openEmulator(t);
  const other = await openEmulator(t);
  const config = { envId: 'e', apiKey: 'k', endpoints: { gateway: emulator.gatewayUrl } };
  await createAgent({ ...config, model: 'glm' }).prompt('hi');
  assert.equal(emulator.requests.length, 1);
  const model = { id: 'glm', apiBaseUrl: other.gatewayUrl };
  await createAgent({ ...config, model }).prompt('hi');
  assert.deepEqual([emulator.requests.length, other.requests.length], [1, 1]);
});

test('a base address with credentials, query or fragment is refused without showing it', async () => {
  const addresses = [
    'https://user:hunter2@gateway.test/v1',
    'https://gateway.test/v1?key=hunter2',
    'https://gateway.test/v1#hunter2',
    'ftp://gateway.test/hunter2',
    'gateway.test/hunter2',
    'http://',
    '//gateway.test/hunter2',
    'javascript:alert("hunter2")',
  ];
  for (const apiBaseUrl of addresses) {
    const error = await errorOf(() => createAgent(offline({ model: { id: 'glm', apiBaseUrl } })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.model.apiBaseUrl', 'http');
    assert.doesNotMatch(error.message, /hunter2/);
    const endpoints = { gateway: apiBaseUrl };
    const shared = await errorOf(() => createAgent(offline({ endpoints })));
    assertRefused(shared, InvalidConfigError, 'E_INVALID_CONFIG', 'config.endpoints.gateway');
    assert.doesNotMatch(shared.message, /hunter2/);
  }
});

test('an envId that is no host label needs an apiBaseUrl', async () => {
  for (const envId of ['a/b', 'a.evil.test', 'a@b', 'ä', 'a b', 'x'.repeat(64), '..', 'a:80']) {
    const error = await errorOf(() => createAgent(offline({ envId })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.envId', 'apiBaseUrl');
    createAgent({ envId, model: { id: 'glm', apiBaseUrl: 'http://127.0.0.1:1' } });
  }
  createAgent(offline({ envId: 'my-env-1a2b3c' }));
});

test('a string as model is a model id', async (t) => {
  const emulator = await openEmulator(t);
  const endpoints = { gateway: emulator.gatewayUrl };
  await createAgent({ envId: 'e', apiKey: 'k', model: 'glm-5', endpoints }).prompt('hi');
  assert.equal(emulator.requests[0].body.model, 'glm-5');
});

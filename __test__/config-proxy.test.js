/** FC-H4: proxies of the configuration and of the environment. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { errorOf } from './support/boundary.js';
import { startProxy } from './support/boundary-proxy.js';

/** A name that only the proxy knows. */
const GATEWAY = 'http://gateway.test/v1/ai/cloudbase';
const VARIABLES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'];
const ALL = VARIABLES.flatMap((name) => [name, name.toLowerCase()]);
for (const name of ALL) delete process.env[name];

async function setUp(t, options) {
  const emulator = await startEmulator({ rules: [{ reply: 'Hello.' }] });
  const proxy = await startProxy(t, emulator.url, options);
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
    for (const name of ALL) delete process.env[name];
  });
  return { emulator, proxy };
}

function ask(emulator, { apiBaseUrl = GATEWAY, env = {}, ...config } = {}) {
  Object.assign(process.env, env);
  const model = { id: 'glm', apiBaseUrl, apiKey: emulator.apiKey, maxRetries: 0 };
  const agent = createAgent({ envId: 'e', model, ...config });
  for (const name of Object.keys(env)) delete process.env[name];
  return agent.prompt('hi');
}

test('FC-H4: config.proxy serves a host that only the proxy knows', async (t) => {
  const { emulator, proxy } = await setUp(t);
  assert.equal((await ask(emulator, { proxy: proxy.url })).text, 'Hello.');
  assert.equal((await ask(emulator, { proxy: proxy.host })).text, 'Hello.');
  assert.ok(proxy.seen.length >= 2);
  for (const { url } of proxy.seen) assert.match(url, /gateway\.test/);
});

test('FC-H4: credentials of the proxy are sent to the proxy', async (t) => {
  const { emulator, proxy } = await setUp(t);
  await ask(emulator, { proxy: `http://me:s3cret@${proxy.host}` });
  const expected = `Basic ${Buffer.from('me:s3cret').toString('base64')}`;
  assert.ok(proxy.seen.some(({ credentials }) => credentials === expected));
  assert.equal(emulator.requests[0].headers.authorization, `Bearer ${emulator.apiKey}`);
});

for (const name of ['HTTP_PROXY', 'http_proxy', 'ALL_PROXY', 'all_proxy']) {
  test(`FC-H4: ${name} of the environment counts`, async (t) => {
    const { emulator, proxy } = await setUp(t);
    assert.equal((await ask(emulator, { env: { [name]: proxy.url } })).text, 'Hello.');
    assert.ok(proxy.seen.length > 0);
  });
}

test('FC-H4: the option wins over the environment', async (t) => {
  const { emulator, proxy } = await setUp(t);
  const other = await startProxy(t, emulator.url);
  await ask(emulator, { env: { HTTP_PROXY: other.url }, proxy: proxy.url });
  assert.equal(other.seen.length, 0);
  assert.ok(proxy.seen.length > 0);
});

test('FC-H4: proxy false switches the environment off', async (t) => {
  const { emulator, proxy } = await setUp(t);
  const error = await errorOf(ask(emulator, { env: { HTTP_PROXY: proxy.url }, proxy: false }));
  assert.equal(error.code, 'E_MODEL_NETWORK');
  assert.doesNotMatch(error.message, /proxy/);
  assert.equal(proxy.seen.length, 0);
});

for (const list of ['gateway.test', '.test', 'test', '*', 'a.b,gateway.test:80', 'GATEWAY.TEST']) {
  test(`FC-H4: NO_PROXY=${list} reaches the host directly`, async (t) => {
    const { emulator, proxy } = await setUp(t);
    const env = { HTTP_PROXY: proxy.url, NO_PROXY: list };
    const error = await errorOf(ask(emulator, { env }));
    assert.equal(error.code, 'E_MODEL_NETWORK');
    assert.equal(proxy.seen.length, 0);
  });
}

for (const list of ['way.test', 'gateway.test:8080', 'other.test', '', ' ,']) {
  test(`FC-H4: NO_PROXY="${list}" does not exempt gateway.test`, async (t) => {
    const { emulator, proxy } = await setUp(t);
    await ask(emulator, { env: { HTTP_PROXY: proxy.url, NO_PROXY: list } });
    assert.ok(proxy.seen.length > 0);
  });
}

test('FC-H4: loopback goes direct, whatever the proxy', async (t) => {
  const { emulator, proxy } = await setUp(t);
  const apiBaseUrl = emulator.gatewayUrl;
  await ask(emulator, { apiBaseUrl, proxy: proxy.url });
  await ask(emulator, { apiBaseUrl, env: { HTTP_PROXY: proxy.url, ALL_PROXY: proxy.url } });
  assert.equal(proxy.seen.length, 0);
  assert.equal(emulator.requests.length, 2);
});

test('FC-H4: the error names the proxy without its credentials', async (t) => {
  const { emulator } = await setUp(t);
  const error = await errorOf(ask(emulator, { proxy: 'http://me:s3cret@127.0.0.1:1' }));
  assert.equal(error.name, 'ModelError');
  assert.equal(error.code, 'E_MODEL_NETWORK');
  assert.match(error.message, /proxy http:\/\/127\.0\.0\.1:1/);
  assert.match(error.message, /gateway\.test/);
  assert.doesNotMatch(error.message + JSON.stringify(error) + error.stack, /s3cret/);
});

test('FC-H4: https goes through CONNECT, and a refusal names the proxy', async (t) => {
  const { emulator, proxy } = await setUp(t, { refuse: 403 });
  const apiBaseUrl = 'https://gateway.test/v1';
  const error = await errorOf(ask(emulator, { apiBaseUrl, env: { HTTPS_PROXY: proxy.url } }));
  assert.equal(error.code, 'E_MODEL_NETWORK');
  assert.ok(error.message.includes(proxy.url), error.message);
  assert.deepEqual(proxy.seen[0], { method: 'CONNECT', url: 'gateway.test:443' });
});

test('FC-H4: an unusable proxy address is refused at createAgent, by name', async (t) => {
  const { emulator } = await setUp(t);
  const error = await errorOf(() => ask(emulator, { proxy: 'ftp://me:s3cret@p' }));
  assert.equal(error.code, 'E_INVALID_CONFIG');
  assert.match(error.message, /config\.proxy/);
  const variable = await errorOf(() => ask(emulator, { env: { HTTP_PROXY: 'ftp://me:s3cret@p' } }));
  assert.match(variable.message, /HTTP_PROXY/);
  assert.doesNotMatch(error.message + variable.message, /s3cret/);
});

/** Secrets reach no message, field, stack, element or warning. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { startEmulator } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { collect, errorOf, offline } from './support/boundary.js';

const SECRET = 'sk-hunter2-0123456789abcdef';

for (const name of ['TCB_API_KEY', 'CLOUDBASE_APIKEY', 'OAK_EMULATOR_HUB'])
  delete process.env[name];

/** Everything that a program may print of a value. */
function shown(value) {
  const all = inspect(value, { depth: 20, showHidden: true, getters: true });
  return `${all}${JSON.stringify(value)}${value?.message}${value?.stack}${String(value)}`;
}

function assertHidden(value) {
  assert.ok(!shown(value).includes('hunter2'), shown(value));
}

test('refused configurations do not show the keys in them', async () => {
  const credentials = { secretId: SECRET, secretKey: SECRET, sessionToken: SECRET };
  const configs = [
    { envId: 5, model: { id: 'glm', apiKey: SECRET } },
    { envId: 'e', apiKey: SECRET, model: {} },
    { envId: 'e', apiKey: SECRET, model: { id: 'glm', apiKey: `${SECRET}2` } },
    { envId: 'e', model: { id: 'glm', apiKey: [SECRET] } },
    { envId: 'e', model: { id: 'glm', apiKey: { key: SECRET } } },
    { envId: 'e', model: { id: 'glm', headers: { authorization: SECRET } } },
    offline({ credentials }),
    offline({ credentials: { ...credentials, region: 5 } }),
    offline({ credentials: { secretId: SECRET } }),
    offline({ sandbox: { apiKey: SECRET } }),
    offline({ sandbox: { provider: SECRET.slice(0, 3), apiKey: SECRET } }),
    offline({ proxy: `ftp://me:${SECRET}@proxy` }),
    offline({ proxy: `http://me:${SECRET}@` }),
    offline({ model: { id: 'g', apiBaseUrl: `https://me:${SECRET}@gateway.test` } }),
    offline({ mcpServers: { a: { type: 'http', headers: { authorization: SECRET } } } }),
    offline({ mcpServers: { a: { env: { TOKEN: SECRET } } } }),
    offline({ session: { database: 'pgsql', url: `postgres://u:${SECRET}@db/x?sslmode=require` } }),
    offline({ session: { database: 'pgsql', url: `postgres://u:${SECRET}@db:x:y/` } }),
    offline({ session: { database: 'pgsql', url: `mysql://u:${SECRET}@db/x` } }),
    offline({ tools: [{ name: 'a', apiKey: SECRET }] }),
  ];
  for (const config of configs) assertHidden(await errorOf(() => createAgent(config)));
});

test('agents and sessions do not show their key', async () => {
  const agent = createAgent({ envId: 'e', model: { id: 'glm', apiKey: SECRET } });
  assertHidden(agent);
  assertHidden(await agent.startSession({ userId: 'u' }));
});

for (const [name, reply] of [
  ['400', { status: 400 }],
  ['401', { status: 401 }],
  ['403', { status: 403 }],
  ['404', { status: 404 }],
  ['500', { status: 500 }],
  ['529', { status: 529 }],
  ['an HTML page', { text: '', knobs: { html: true } }],
  ['a dropped connection', { text: '', knobs: { dropConnection: true } }],
]) {
  test(`failures of the gateway do not show the key: ${name}`, async (t) => {
    const emulator = await startEmulator({ apiKey: SECRET, rules: [{ reply }] });
    t.after(() => emulator.close());
    const model = {
      id: 'glm',
      apiBaseUrl: emulator.gatewayUrl,
      apiKey: SECRET,
      maxRetries: 0,
      restart: 'never',
    };
    const agent = createAgent({ envId: 'e', model });
    const session = await agent.startSession({ userId: 'u' });
    assertHidden(await errorOf(session.prompt('hi')));
    assertHidden(await collect(session.send('hi')));
    await agent.close();
    assert.deepEqual(emulator.violations, []);
  });
}

test('a gateway that repeats the key back does not get it shown', async (t) => {
  const error = { type: 'authentication_error', message: `invalid key ${SECRET} for you` };
  const emulator = await startEmulator({
    apiKey: SECRET,
    rules: [{ reply: { status: 401, error } }],
  });
  t.after(() => emulator.close());
  const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: SECRET, maxRetries: 0 };
  const failure = await errorOf(createAgent({ envId: 'e', model }).prompt('hi'));
  assert.equal(failure.code, 'E_MODEL_AUTH');
  assertHidden(failure);
});

test('a key that no header can carry is refused without being shown', async (t) => {
  const emulator = await startEmulator({ apiKey: null, rules: [{ reply: 'x' }] });
  t.after(() => emulator.close());
  for (const apiKey of [`${SECRET}\nx-evil: 1`, `${SECRET}\0`, `${SECRET}\r\n\r\n`]) {
    const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey, maxRetries: 0 };
    const error = await errorOf(() => createAgent({ envId: 'e', model }).prompt('hi'));
    assert.match(error.message, /key/i);
    assert.match(error.code, /^E_/);
    assertHidden(error);
  }
  assert.equal(emulator.requests.length, 0);
});

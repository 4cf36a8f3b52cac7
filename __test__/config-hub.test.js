/** `OAK_EMULATOR_HUB`: agents of a program talk to a local emulator. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { ENTRY, runModule } from './support/boundary.js';

/** A program that prompts once with each configuration and tells what came of it. */
async function program(env, configs = ['{}']) {
  const source = `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push({ code, message }));
    const results = [];
    for (const config of [${configs.join(',')}]) {
      try {
        const agent = createAgent({ envId: 'e', model: { id: 'glm', maxRetries: 0 }, ...config });
        results.push({ text: (await agent.prompt('hi')).text });
      } catch ({ name, code, message }) {
        results.push({ name, code, message });
      }
    }
    console.log(JSON.stringify({ warnings, results }));
  `;
  const { code, out, err } = await runModule(source, { env });
  assert.equal(code, 0, err);
  return { ...JSON.parse(out), err };
}

async function emulatorFor(t, options) {
  const emulator = await startEmulator({ rules: [{ reply: 'Hello.' }], ...options });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  return emulator;
}

test('the hub gives gateway and key, with one warning for all agents', async (t) => {
  const emulator = await emulatorFor(t, { apiKey: 'hub-key' });
  const env = { OAK_EMULATOR_HUB: emulator.url };
  // A program that has a real key runs unchanged, and its key is not shown to the emulator.
  const real = `{ model: { id: 'glm', apiKey: 'real-key' } }`;
  const { results, warnings, err } = await program(env, ['{}', '{}', real]);
  assert.deepEqual(results, [{ text: 'Hello.' }, { text: 'Hello.' }, { text: 'Hello.' }]);
  for (const { headers } of emulator.requests) {
    assert.equal(headers.authorization, 'Bearer hub-key');
  }
  assert.equal(warnings.length, 1);
  assert.match(warnings[0].message, /OAK_EMULATOR_HUB/);
  assert.equal(err.match(/OAK_EMULATOR_HUB/g).length, 1);
});

test('an own address wins over the hub, and a hub without a key takes any', async (t) => {
  const hub = await emulatorFor(t, { apiKey: null });
  const own = await emulatorFor(t, { apiKey: null });
  const env = { OAK_EMULATOR_HUB: hub.url, TCB_API_KEY: 'env-key' };
  const { results, warnings } = await program(env, [
    `{ model: { id: 'glm', apiBaseUrl: '${own.gatewayUrl}', apiKey: 'own-key' } }`,
    '{}',
  ]);
  assert.deepEqual(results, [{ text: 'Hello.' }, { text: 'Hello.' }]);
  assert.equal(own.requests[0].headers.authorization, 'Bearer own-key');
  assert.equal(hub.requests[0].headers.authorization, 'Bearer env-key');
  assert.equal(warnings.length, 1);
});

test('without the hub there is no warning', async () => {
  const { results, warnings, err } = await program({ OAK_EMULATOR_HUB: '' });
  assert.equal(results[0].code, 'E_RESOURCE');
  assert.deepEqual([warnings, err], [[], '']);
});

test('the hub is refused in production', async (t) => {
  const emulator = await emulatorFor(t);
  const env = { OAK_EMULATOR_HUB: emulator.url, NODE_ENV: 'production' };
  const { results } = await program(env);
  assert.equal(results[0].name, 'InvalidConfigError');
  assert.match(results[0].message, /OAK_EMULATOR_HUB.*NODE_ENV/);
  assert.equal(emulator.requests.length, 0);
});

test('the hub must be a loopback address', async () => {
  const addresses = [
    'http://192.0.2.1:4000',
    'http://example.com',
    'http://127.0.0.1.evil.test',
    'http://localhost.evil.test',
    'http://0.0.0.0:1',
    'http://user:pw@127.0.0.1:1',
    'nonsense',
    'file:///etc/passwd',
  ];
  for (const OAK_EMULATOR_HUB of addresses) {
    const { results } = await program({ OAK_EMULATOR_HUB });
    assert.equal(results[0].name, 'InvalidConfigError', OAK_EMULATOR_HUB);
    assert.match(results[0].message, /OAK_EMULATOR_HUB/);
  }
});

test('a hub that is not there, or no hub, is a typed error that names it', async (t) => {
  const server = createServer((request, response) => response.end('<html>'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const dead = 'http://127.0.0.1:1';
  for (const hub of [`http://127.0.0.1:${server.address().port}`, dead]) {
    const { results } = await program({ OAK_EMULATOR_HUB: hub });
    assert.equal(results[0].name, 'ModelError');
    assert.equal(results[0].code, 'E_MODEL_NETWORK');
    assert.ok(results[0].message.includes('OAK_EMULATOR_HUB'), results[0].message);
  }
});

test('a hub whose gateway is elsewhere is not followed', async (t) => {
  const answer = { endpoints: { gateway: 'http://192.0.2.1/v1' }, apiKey: 'k' };
  const server = createServer((request, response) => response.end(JSON.stringify(answer)));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const env = { OAK_EMULATOR_HUB: `http://127.0.0.1:${server.address().port}` };
  const { results } = await program(env);
  assert.match(results[0].message, /not on this machine/);
});

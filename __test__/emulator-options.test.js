import assert from 'node:assert/strict';
import { networkInterfaces } from 'node:os';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { emulatorFor, message } from '../emulator/fixtures/client.js';
import { reachable } from '../emulator/server/address.js';

const RANGE = /^port: must be a whole number from 0 to 65535; leave it out or give 0 .*; got /;
const MISTAKES = [
  ['a null', null, TypeError, /^options: must be an object such as .*got null; leave it out/],
  ['an array', [], TypeError, /^options: .*got an array/],
  ['a text', 'x', TypeError, /^options: .*got "x"/],
  ['a number', 8787, TypeError, /^options: .*got 8787/],
  ['a function', () => {}, TypeError, /^options: .*got a value of type function/],
  [
    'an unknown name',
    { rule: [] },
    TypeError,
    /^unknown emulator option "rule"; known: port, host/,
  ],
  ['a name of Object', { toString: 1 }, TypeError, /^unknown emulator option "toString"/],
  ['port x', { port: 'x' }, TypeError, /^port: must be a number from 0 to 65535; .*; got "x"$/],
  ['port "8787"', { port: '8787' }, TypeError, /^port: must be a number .*; got "8787"$/],
  ['port null', { port: null }, TypeError, /^port: .*leave it out.*; got null$/],
  ['port -1', { port: -1 }, RangeError, RANGE],
  ['port 70000', { port: 70_000 }, RangeError, RANGE],
  ['port 1.5', { port: 1.5 }, RangeError, RANGE],
  ['port NaN', { port: NaN }, RangeError, RANGE],
  ['host 5', { host: 5 }, TypeError, /^host: must be an address .*"127\.0\.0\.1".*; got 5$/],
  ['an empty host', { host: '' }, TypeError, /^host: .*leave it out for 127\.0\.0\.1; got ""$/],
  ['a host list', { host: ['::'] }, TypeError, /^host: .*got an array$/],
  ['a number as key', { apiKey: 5 }, TypeError, /^apiKey: .*give null to let everybody in; got 5$/],
  ['an empty key', { apiKey: '' }, TypeError, /^apiKey: must be a text that is not empty/],
  ['envId null', { envId: null }, TypeError, /^envId: must be a text; .*got null$/],
  ['validate 0', { validate: 0 }, TypeError, /^validate: must be true or false; .*got 0$/],
  ['recordRequests {}', { recordRequests: {} }, TypeError, /^recordRequests: .*of type object$/],
  ['rules null', { rules: null }, TypeError, /^rules: must be an array/],
  ['knobs null', { knobs: null }, TypeError, /^knobs: must be an object/],
];
for (const [name, options, type, wanted] of MISTAKES) {
  test(`startEmulator refuses ${name}`, async () => {
    const promise = startEmulator(options);
    await assert.rejects(promise, (error) => {
      assert.equal(error.constructor, type, error.stack);
      assert.match(error.message, wanted);
      return true;
    });
  });
}

test('what is left out has a default', async (t) => {
  const left = { port: undefined, host: undefined, rules: undefined, apiKey: undefined };
  for (const args of [[], [undefined], [{}], [left]]) {
    const emulator = await startEmulator(...args);
    t.after(() => emulator.close());
    assert.match(emulator.url, /^http:\/\/127\.0\.0\.1:[1-9]\d*$/);
    assert.equal(emulator.everywhere, false);
    assert.equal(emulator.apiKey, 'emulator-key');
  }
});

test('the limits of the port are not refused as such', async (t) => {
  await emulatorFor(t, { port: 0 });
  const emulator = await startEmulator({ port: 65_535 }).catch((error) => error);
  // Somebody else may have it.
  if (emulator instanceof Error) assert.equal(emulator.code, 'EADDRINUSE');
  else await emulator.close();
});

test('an emulator on all addresses names one that clients can connect to', async (t) => {
  const emulator = await emulatorFor(t, { host: '0.0.0.0' });
  assert.match(emulator.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(emulator.everywhere, true);
  const hub = await (await fetch(emulator.url)).json();
  assert.equal(hub.endpoints.gateway, emulator.gatewayUrl);
  assert.ok(emulator.gatewayUrl.startsWith(`${emulator.url}/`));
  assert.match((await message(emulator, 'x')).content[0].text, /local emulator/);
});

test('addresses that clients connect to', () => {
  const at = (host, address) => reachable(host, { address, port: 80 });
  assert.deepEqual(at('0', '0.0.0.0'), { url: 'http://127.0.0.1:80', everywhere: true });
  assert.deepEqual(at('::', '::'), { url: 'http://[::1]:80', everywhere: true });
  assert.deepEqual(at('::1', '::1'), { url: 'http://[::1]:80', everywhere: false });
  assert.deepEqual(at('localhost', '::1'), { url: 'http://localhost:80', everywhere: false });
});

const hasIPv6 = Object.values(networkInterfaces())
  .flat()
  .some(({ address }) => address === '::1');
if (hasIPv6) {
  test('all addresses of IPv6', async (t) => {
    const emulator = await emulatorFor(t, { host: '::' });
    assert.match(emulator.url, /^http:\/\/\[::1\]:\d+$/);
    assert.match((await message(emulator, 'x')).content[0].text, /local emulator/);
  });
}

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { emulatorFor, message, send, stream } from '../emulator/fixtures/client.js';

test('the hub tells everything a kernel needs', async (t) => {
  const emulator = await emulatorFor(t, { envId: 'env-1' });
  assert.match(emulator.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.equal(emulator.gatewayUrl, `${emulator.url}/v1/ai/cloudbase`);
  const hub = await (await fetch(emulator.url)).json();
  assert.deepEqual(hub.endpoints, { gateway: emulator.gatewayUrl });
  assert.equal(hub.envId, 'env-1');
  assert.equal(hub.apiKey, 'emulator-key');
  assert.deepEqual(Object.keys(hub.credentials), ['secretId', 'secretKey']);
});

test('a wrong key is refused, null lets everybody in', async (t) => {
  const emulator = await emulatorFor(t);
  const refused = await send(emulator, 'x', { headers: { authorization: 'Bearer wrong' } });
  assert.equal(refused.status, 401);
  const body = await refused.json();
  assert.equal(body.error.type, 'authentication_error');
  assert.equal(body.request_id, refused.headers.get('request-id'));
  const open = await emulatorFor(t, { apiKey: null });
  const accepted = await send(open, 'x', { headers: {} });
  assert.equal(accepted.status, 200);
  await accepted.text();
});

test('requests are recorded with body, status and rule', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: 'x' }] });
  await stream(emulator, 'hi');
  await emulator.idle();
  const [record] = emulator.requests;
  assert.equal(record.method, 'POST');
  assert.equal(record.path, '/v1/ai/cloudbase/v1/messages?beta=true');
  assert.equal(record.body.messages[0].content, 'hi');
  assert.equal(record.headers['content-type'], 'application/json');
  assert.equal(record.status, 200);
  assert.equal(record.rule, 0);
  assert.equal(record.aborted, false);
  assert.ok(record.endedAt >= record.at);
});

test('recordRequests false keeps violations only', async (t) => {
  const emulator = await emulatorFor(t, { recordRequests: false });
  await stream(emulator, 'hi');
  await message(emulator, { messages: [] });
  assert.equal(emulator.requests.length, 0);
  assert.equal(emulator.violations[0].rule, 'messages-present');
});

test('a body that is no valid JSON text is a violation', async (t) => {
  const emulator = await emulatorFor(t);
  const bodies = ['{', new Uint8Array([0x22, 0xff, 0x22])];
  for (const body of bodies) assert.equal((await send(emulator, 'x', { body })).status, 400);
  const surrogate = await send(emulator, { messages: [{ role: 'user', content: 'a\ud83d' }] });
  assert.match((await surrogate.json()).error.message, /^lone-surrogate: .*messages\.0\.content/);
  assert.deepEqual(
    emulator.violations.map(({ rule }) => rule),
    ['body-json', 'body-utf8', 'lone-surrogate'],
  );
  assert.equal(emulator.requests[2].violation.rule, 'lone-surrogate');
});

test('validate false records violations but answers', async (t) => {
  const emulator = await emulatorFor(t, { validate: false, rules: [{ reply: 'ok' }] });
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'system', content: 'facts' },
  ];
  assert.equal((await message(emulator, { messages })).content[0].text, 'ok');
  assert.equal(emulator.violations[0].rule, 'message-role');
  assert.equal((await send(emulator, 'x', { body: '{' })).status, 400);
  assert.equal((await send(emulator, { messages: 'x' })).status, 400);
});

test('other paths and methods are told', async (t) => {
  const emulator = await emulatorFor(t);
  const status = async (url, init) => (await fetch(url, init)).status;
  assert.equal(await status(`${emulator.gatewayUrl}/v1/models`), 404);
  assert.equal(await status(`${emulator.gatewayUrl}/v1/messages`), 405);
  assert.equal(await status(`${emulator.url}/other`), 404);
  assert.equal(await status(`${emulator.url}/_emulator/other`), 404);
  assert.equal(await status(`${emulator.url}//`), 404);
});

test('thinking must come back unchanged, and with its calls', async (t) => {
  const calls = [{ id: 'toolu_1', name: 'f', input: {} }];
  const reply = { thinking: 'deep', signature: 'custom', toolCalls: calls };
  const rules = [{ times: 1, reply }, { reply: 'ok' }];
  const emulator = await emulatorFor(t, { rules });
  const { content } = await message(emulator, 'q');
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' };
  const again = (blocks) =>
    message(emulator, {
      messages: [
        { role: 'user', content: 'q' },
        { role: 'assistant', content: blocks },
        { role: 'user', content: [result] },
      ],
    });
  const changed = await again([{ ...content[0], thinking: 'shallow' }, content[1]]);
  assert.match(changed.error.message, /^thinking-unchanged: messages\.1\.content\.0/);
  assert.match(
    (await again([content[1]])).error.message,
    /^thinking-kept: messages\.1\.content\.0/,
  );
  assert.equal((await again(content)).content[0].text, 'ok');
});

test('thinking that never arrived need not come back', async (t) => {
  const calls = [{ id: 'toolu_1', name: 'f', input: {} }];
  const rules = [{ times: 1, reply: { thinking: 'deep', toolCalls: calls } }, { reply: 'ok' }];
  const emulator = await emulatorFor(t, { rules, knobs: { truncateAfter: 2 } });
  await stream(emulator, 'q');
  emulator.setKnobs({});
  const messages = [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: [{ type: 'tool_use', ...calls[0] }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1' }] },
  ];
  assert.equal((await message(emulator, { messages })).content[0].text, 'ok');
});

test('other processes can look in and steer', async (t) => {
  const emulator = await emulatorFor(t);
  const call = async (action, value) => {
    const init = value === undefined ? {} : { method: 'POST', body: JSON.stringify(value) };
    const response = await fetch(`${emulator.url}/_emulator/${action}`, init);
    return { status: response.status, body: await response.json() };
  };
  const rules = [{ when: { user: { regex: 'x' } }, reply: 'scripted' }];
  assert.equal((await call('rules', rules)).status, 200);
  assert.equal((await message(emulator, 'x')).content[0].text, 'scripted');
  assert.match((await call('rules', [{ what: 1 }])).body.error.message, /rules\.0\.what/);
  await message(emulator, 'y');
  assert.equal((await call('requests')).body.length, 2);
  assert.equal((await call('violations')).body[0].rule, 'no-rule');
  assert.equal((await call('knobs', { status: 500 })).status, 200);
  assert.equal((await send(emulator, 'x')).status, 500);
  assert.equal((await call('knobs', { no: 1 })).status, 400);
  assert.equal((await call('state')).body.requests, 3);
  assert.equal((await call('reset', {})).status, 200);
  assert.match((await message(emulator, 'x')).content[0].text, /local emulator/);
  assert.equal((await call('requests')).body.length, 1);
});

test('close is safe to call twice and frees the port', async () => {
  const emulator = await startEmulator();
  await message(emulator, 'x');
  await Promise.all([emulator.close(), emulator[Symbol.asyncDispose]()]);
  await assert.rejects(fetch(emulator.url));
  const second = await startEmulator({ port: Number(new URL(emulator.url).port) });
  await second.close();
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError } from '../emulator/index.js';
import * as chat from '../emulator/fixtures/chat-client.js';
import { call, calling, result, user } from '../emulator/fixtures/chat-requests.js';
import * as messages from '../emulator/fixtures/client.js';

const { emulatorFor } = messages;
const { send } = chat;

test('requests are recorded as they were sent', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: 'x' }] });
  await chat.stream(emulator, 'hi');
  await emulator.idle();
  const [record] = emulator.requests;
  assert.equal(record.method, 'POST');
  assert.equal(record.path, '/v1/ai/cloudbase/chat/completions');
  assert.deepEqual(record.body.messages, [user('hi')]);
  assert.equal(record.status, 200);
  assert.equal(record.rule, 0);
  assert.equal(record.aborted, false);
  assert.equal(emulator.openStreams(), 0);
});

test('errors have the form of the protocol', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ when: { user: 'known' }, reply: 'x' }] });
  const cases = [
    ['x', { headers: { authorization: 'Bearer wrong' } }, 401, 'authentication_error', /API key/],
    ['x', { method: 'PUT' }, 405, 'invalid_request_error', /^use POST$/],
    ['x', { body: '{' }, 400, 'invalid_request_error', /^body-json: /],
    [{ messages: [] }, {}, 400, 'invalid_request_error', /^messages-present: /],
    ['other', {}, 400, 'invalid_request_error', /^no-rule: .*"other"/],
  ];
  for (const [body, init, status, type, message] of cases) {
    const response = await send(emulator, body, init);
    assert.equal(response.status, status);
    assert.match(response.headers.get('request-id'), /^req_/);
    const answer = await response.json();
    assert.deepEqual(Object.keys(answer), ['error']);
    assert.deepEqual({ ...answer.error, message: '' }, { message: '', type, code: null });
    assert.match(answer.error.message, message);
  }
  assert.deepEqual(
    emulator.violations.map(({ rule }) => rule),
    ['body-json', 'messages-present', 'no-rule'],
  );
  assert.equal(emulator.violations[0].path, '/v1/ai/cloudbase/chat/completions');
});

test('failures in a script', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [
      { times: 1, reply: httpError(529, { message: 'busy' }, { 'retry-after': '7' }) },
      { times: 1, reply: httpError(400, { code: 'context_length_exceeded' }) },
      { times: 1, reply: { status: 502, body: 'bad gateway' } },
      { times: 1, knobs: { status: 429 } },
      { reply: { txt: 'x' } },
    ],
  });
  const busy = await send(emulator, 'x');
  assert.equal(busy.status, 529);
  assert.equal(busy.headers.get('retry-after'), '7');
  const error = async (response) => (await response.json()).error;
  assert.deepEqual(await error(busy), { message: 'busy', type: 'overloaded_error', code: null });
  assert.equal((await error(await send(emulator, 'x'))).code, 'context_length_exceeded');
  assert.equal(await (await send(emulator, 'x')).text(), 'bad gateway');
  assert.equal((await error(await send(emulator, 'x'))).type, 'rate_limit_error');
  assert.deepEqual(emulator.violations, []);
  assert.match((await error(await send(emulator, 'x'))).message, /^script-error: rules\.4\.reply/);
});

test('validate false records violations but answers', async (t) => {
  const emulator = await emulatorFor(t, { validate: false, rules: [{ reply: 'ok' }] });
  const answer = await chat.completion(emulator, {
    messages: [user('x'), { role: 'system', content: 'late' }, user('y')],
  });
  assert.equal(answer.choices[0].message.content, 'ok');
  assert.equal(emulator.violations[0].rule, 'system-first');
  assert.equal((await send(emulator, { messages: 'x' })).status, 400);
});

test('foreignErrors: a refusal, a failure and an error event of the other protocol', async (t) => {
  const rules = [
    { when: { user: 'fail' }, reply: httpError(500, { message: 'down' }) },
    { reply: 'x', knobs: { errorAfter: { events: 0 } } },
  ];
  const emulator = await emulatorFor(t, { rules, knobs: { foreignErrors: true } });
  const overloaded = { type: 'overloaded_error', message: 'Overloaded' };
  const refused = async (sender) => (await sender(emulator, { messages: [] })).json();
  const failed = async (sender) => (await sender(emulator, 'fail')).json();
  const streamed = async (sender) => (await sender(emulator, 'x')).text();

  assert.equal((await refused(send)).type, 'error');
  assert.equal((await refused(messages.send)).error.code, null);

  const { request_id: requestId, ...foreign } = await failed(send);
  assert.deepEqual(foreign, { type: 'error', error: { type: 'api_error', message: 'down' } });
  assert.match(requestId, /^req_/);
  assert.deepEqual(await failed(messages.send), {
    error: { message: 'down', type: 'api_error', code: null },
  });

  const event = JSON.stringify({ type: 'error', error: overloaded });
  assert.equal(await streamed(send), `event: error\ndata: ${event}\n\n`);
  const chunk = JSON.stringify({ error: overloaded });
  assert.equal(await streamed(messages.send), `data: ${chunk}\n\n`);
});

test('a rule can switch foreignErrors on and off', async (t) => {
  const failure = httpError(500);
  const rules = [
    { when: { user: 'own' }, reply: failure, knobs: { foreignErrors: null } },
    { reply: failure },
  ];
  const emulator = await emulatorFor(t, { rules, knobs: { foreignErrors: true } });
  assert.equal((await (await send(emulator, 'own')).json()).type, undefined);
  assert.equal((await (await send(emulator, 'x')).json()).type, 'error');
});

test('a body that is too large is refused in the form of the protocol', async (t) => {
  const emulator = await emulatorFor(t);
  const response = await send(emulator, 'x', { body: ' '.repeat(32 * 1024 * 1024 + 1) });
  assert.equal(response.status, 413);
  assert.deepEqual(Object.keys(await response.json()), ['error']);
});

test('thinking of this endpoint need not come back at the other one', async (t) => {
  const calls = [{ id: 'c1', name: 'f', input: {} }];
  const rules = [{ times: 1, reply: { thinking: 'deep', toolCalls: calls } }, { reply: 'ok' }];
  const emulator = await emulatorFor(t, { rules });
  await chat.stream(emulator, 'q');
  const content = [{ type: 'tool_use', ...calls[0] }];
  const body = { messages: messages.afterTools('q', content, 'r') };
  assert.equal((await messages.message(emulator, body)).content[0].text, 'ok');
});

test('other processes steer both endpoints', async (t) => {
  const emulator = await emulatorFor(t);
  const rules = [{ when: { tool: 'f' }, reply: 'scripted' }];
  await fetch(`${emulator.url}/_emulator/rules`, { method: 'POST', body: JSON.stringify(rules) });
  const body = { messages: [user('q'), calling(call('a')), result('a')] };
  assert.equal(chat.textOf(await chat.stream(emulator, body)), 'scripted');
});

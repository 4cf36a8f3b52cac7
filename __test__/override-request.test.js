import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { both } from './support/format-protocols.js';
import { errorOf, textOf } from './support/gateway-elements.js';
import { gatewayFor } from './support/gateway.js';

const SECRET = 'sk-very-secret-0123456789';
const create = (model) => createAgent({ envId: 'e', model: { id: 'glm', apiKey: 'k', ...model } });

both('options become fields of the request', async (t, protocol, agentFor) => {
  const options = {
    top_p: 0.5,
    metadata: { user_id: 'u', deep: [1, null, { a: true }] },
    'x-y': '北京',
  };
  const { send, emulator } = await agentFor({ rules: 'ok', model: { options, temperature: 0.25 } });
  await send('hi');
  const [{ body }] = emulator.requests;
  assert.deepEqual({ top_p: body.top_p, metadata: body.metadata, 'x-y': body['x-y'] }, options);
  assert.equal(body.temperature, 0.25);
});

both('headers are sent, in any spelling', async (t, protocol, agentFor) => {
  const headers = { 'X-Team': 'blue', 'x-trace': 'abc', 'User-Agent': 'mine/1' };
  const { send, emulator } = await agentFor({ rules: 'ok', model: { headers } });
  await send('hi');
  const [{ headers: sent }] = emulator.requests;
  assert.deepEqual(
    [sent['x-team'], sent['x-trace'], sent['user-agent']],
    ['blue', 'abc', 'mine/1'],
  );
  assert.equal(sent.authorization, `Bearer ${emulator.apiKey}`);
  assert.equal(sent['content-type'], 'application/json');
});

test('override: betas and thinking belong to the Messages API', async (t) => {
  const thinking = { type: 'enabled', budget_tokens: 1_024 };
  const { send, emulator } = await gatewayFor(t, {
    rules: 'ok',
    model: { betas: ['first-2025', 'second-2026'], thinking },
  });
  assert.equal(textOf(await send('hi')), 'ok');
  const [{ headers, body }] = emulator.requests;
  assert.equal(headers['anthropic-beta'], 'first-2025,second-2026');
  assert.deepEqual(body.thinking, thinking);
  const wanted = (message) => ({ code: 'E_INVALID_CONFIG', message });
  assert.throws(() => create({ protocol: 'openai', thinking }), wanted(/thinking.*options/));
  assert.throws(() => create({ protocol: 'openai', betas: ['a'] }), wanted(/betas/));
});

test('override: nothing is sent that was not asked for', async (t) => {
  const { send, emulator } = await gatewayFor(t, { rules: 'ok' });
  await send('hi');
  const [{ headers, body }] = emulator.requests;
  assert.equal(headers['anthropic-beta'], undefined);
  assert.deepEqual(Object.keys(body).sort(), ['max_tokens', 'messages', 'model', 'stream']);
});

const RESERVED_FIELDS = [
  'model',
  'messages',
  'system',
  'tools',
  'stream',
  'stream_options',
  'max_tokens',
  'temperature',
  'thinking',
];
const RESERVED_HEADERS = [
  'authorization',
  'Authorization',
  'content-type',
  'content-length',
  'host',
  'accept',
  'transfer-encoding',
];

test('override: fields and headers of the kernel are refused, by name', () => {
  for (const protocol of ['anthropic', 'openai']) {
    for (const key of RESERVED_FIELDS) {
      assert.throws(
        () => create({ protocol, options: { [key]: SECRET } }),
        (error) => {
          assert.equal(error.code, 'E_INVALID_CONFIG');
          assert.ok(error.message.includes(`options.${key}`), error.message);
          assert.ok(!error.message.includes(SECRET));
          return true;
        },
      );
    }
    for (const key of RESERVED_HEADERS) {
      assert.throws(
        () => create({ protocol, headers: { [key]: SECRET } }),
        (error) => {
          assert.equal(error.code, 'E_INVALID_CONFIG');
          assert.ok(error.message.includes(`headers.${key}`), error.message);
          assert.ok(!error.message.includes(SECRET));
          return true;
        },
      );
    }
  }
});

const WRONG = {
  'options of a wrong type': [{ options: 'a' }, /options/],
  'options as a list': [{ options: [1] }, /options/],
  'an option that is a function': [{ options: { a: () => 1 } }, /options/],
  'headers of a wrong type': [{ headers: 'a' }, /headers/],
  'a header that is no text': [{ headers: { 'x-a': 5 } }, /headers\.x-a/],
  'a header with a line break': [{ headers: { 'x-a': `${SECRET}\r\nx-b: 1` } }, /headers\.x-a/],
  'a header without a valid name': [{ headers: { 'x a': 'b' } }, /headers\.x a/],
  'betas of a wrong type': [{ betas: 'a' }, /betas/],
  'a beta that is no text': [{ betas: [1] }, /betas/],
  'thinking of a wrong type': [{ thinking: true }, /thinking/],
  'a wrong restart': [{ restart: 'always' }, /restart/],
  'a temperature out of range': [{ temperature: 3 }, /temperature/],
};

for (const [name, [model, message]] of Object.entries(WRONG)) {
  test(`override: ${name} is refused`, () => {
    assert.throws(
      () => create(model),
      (error) => {
        assert.equal(error.code, 'E_INVALID_CONFIG');
        assert.match(error.message, message);
        assert.ok(!error.message.includes(SECRET));
        return true;
      },
    );
  });
}

both('keys in headers and options never come back in errors', async (t, protocol, agentFor) => {
  const { send, session } = await agentFor({
    rules: [
      { times: 2, when: { user: 'status' }, reply: httpError(400, { message: 'no' }) },
      { times: 2, when: { user: 'page' }, reply: 'x', knobs: { html: true } },
      { reply: 'x', knobs: { dropConnection: true } },
    ],
    model: {
      headers: { 'x-api-key': SECRET },
      options: { api_secret: SECRET },
      maxRetries: 0,
    },
  });
  for (const prompt of ['status', 'page', 'drop']) {
    const error = errorOf(await send(prompt));
    assert.doesNotMatch(JSON.stringify(error), new RegExp(SECRET));
    await assert.rejects(session.prompt(prompt), ({ message, stack, details, cause }) => {
      assert.doesNotMatch(
        JSON.stringify([message, stack, details, `${cause}`]),
        new RegExp(SECRET),
      );
      return true;
    });
  }
});

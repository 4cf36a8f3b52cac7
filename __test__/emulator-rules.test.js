import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, startEmulator, toolCall } from '../emulator/index.js';
import { afterTools, emulatorFor, message, send } from '../emulator/fixtures/client.js';

const answer = async (emulator, body) => (await message(emulator, body)).content[0].text;

test('the first matching rule answers', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [
      { when: { user: 'alpha' }, reply: 'contains' },
      { when: { user: /^be+ta$/i }, reply: 'matches' },
      { when: { user: { regex: '^GAMMA', flags: 'i' } }, reply: 'matches JSON' },
      { when: (_request, { user }) => user.length > 20, reply: 'function' },
      { reply: 'fallback' },
    ],
  });
  assert.equal(await answer(emulator, 'say alpha now'), 'contains');
  assert.equal(await answer(emulator, 'Beeta'), 'matches');
  assert.equal(await answer(emulator, 'gamma ray'), 'matches JSON');
  assert.equal(await answer(emulator, 'a text with many characters'), 'function');
  assert.equal(await answer(emulator, 'x'), 'fallback');
});

test('conditions on results, system, model, tools and turn', async (t) => {
  const rules = [
    { when: { tool: 'lookup', toolResult: '42' }, reply: 'tool and result' },
    { when: { hasToolResult: true }, reply: 'other result' },
    { when: { system: 'pirate' }, reply: 'system' },
    { when: { model: 'big' }, reply: 'model' },
    { when: { offersTool: 'dig' }, reply: 'offers' },
    { when: { turn: 1 }, reply: 'turn' },
    { reply: 'fallback' },
  ];
  const emulator = await emulatorFor(t, { rules });
  const messages = [{ role: 'user', content: 'q' }];
  const call = [{ type: 'tool_use', id: 'a', name: 'lookup', input: {} }];
  const later = [...messages, { role: 'assistant', content: 'x' }, { role: 'user', content: 'y' }];
  const tools = [{ name: 'dig', input_schema: { type: 'object' } }];
  assert.equal(
    await answer(emulator, { messages: afterTools('q', call, '42') }),
    'tool and result',
  );
  assert.equal(await answer(emulator, { messages: afterTools('q', call, '43') }), 'other result');
  assert.equal(await answer(emulator, { messages, system: 'You are a pirate' }), 'system');
  assert.equal(await answer(emulator, { messages, model: 'big' }), 'model');
  assert.equal(await answer(emulator, { messages, model: 'bigger' }), 'fallback');
  assert.equal(await answer(emulator, { messages, tools }), 'offers');
  assert.equal(await answer(emulator, { messages: later }), 'turn');
});

test('the user text stays the question while tools run; reminders are skipped', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: '{{user}}|{{toolResult}}|{{tool}}' }] });
  const call = [{ type: 'tool_use', id: 'a', name: 'lookup', input: {} }];
  const messages = afterTools('q', call, '{{user}} 42');
  messages[0].content = [
    { type: 'text', text: '<system-reminder>facts</system-reminder>' },
    { type: 'text', text: 'the question' },
  ];
  assert.equal(await answer(emulator, { messages }), 'the question|{{user}} 42|lookup');
});

test('templates reach into tool inputs', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: toolCall('f', { q: ['{{user}}'] }) }] });
  const { content } = await message(emulator, 'say "hi"');
  assert.deepEqual(content[0].input, { q: ['say "hi"'] });
});

test('times limits a rule, a list is a sequence', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [{ times: 1, reply: 'once' }, { reply: ['first', { text: 'second' }] }],
  });
  const seen = [];
  for (let round = 0; round < 4; round += 1) seen.push(await answer(emulator, 'x'));
  assert.deepEqual(seen, ['once', 'first', 'second', 'second']);
  emulator.reset();
  assert.equal(await answer(emulator, 'x'), 'once');
  assert.equal(emulator.requests.length, 1);
});

test('two simultaneous requests cannot take the same last use', async (t) => {
  const rules = [{ times: 1, reply: 'once' }, { reply: 'rest' }];
  const emulator = await emulatorFor(t, { rules });
  const seen = await Promise.all(Array.from({ length: 8 }, () => answer(emulator, 'x')));
  assert.equal(seen.filter((value) => value === 'once').length, 1);
});

test('reply functions get the request and the facts', async (t) => {
  const reply = async (request, { user, use, headers }) =>
    `${request.model} ${user} ${use} ${headers['content-type']} {{user}}`;
  const emulator = await emulatorFor(t, { rules: [{ reply }] });
  assert.equal(await answer(emulator, 'hey'), 'test-model hey 0 application/json {{user}}');
});

test('failures in a script', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [
      { times: 1, reply: httpError(529, { message: 'busy' }, { 'retry-after': '7' }) },
      {
        times: 1,
        reply: { status: 502, body: 'bad gateway', headers: { 'content-type': 'text/plain' } },
      },
      { times: 1, knobs: { status: 429 } },
    ],
  });
  const busy = await send(emulator, 'x');
  assert.equal(busy.status, 529);
  assert.equal(busy.headers.get('retry-after'), '7');
  const body = await busy.json();
  assert.deepEqual(body.error, { type: 'overloaded_error', message: 'busy' });
  assert.equal(body.request_id, busy.headers.get('request-id'));
  const plain = await send(emulator, 'x');
  assert.equal(plain.headers.get('content-type'), 'text/plain');
  assert.equal(await plain.text(), 'bad gateway');
  assert.equal((await (await send(emulator, 'x')).json()).error.type, 'rate_limit_error');
  assert.deepEqual(emulator.violations, []);
});

test('no rule, and a reply that fails, are told to the client and recorded', async (t) => {
  const fails = () => {
    throw new Error('script bug');
  };
  const emulator = await emulatorFor(t, {
    rules: [
      { when: { user: 'throw' }, reply: fails },
      { when: { user: 'typo' }, reply: { txt: 'x' } },
    ],
  });
  assert.match((await message(emulator, 'unknown')).error.message, /^no-rule: .*"unknown"/);
  assert.match((await message(emulator, 'throw')).error.message, /rules\.0\.reply.*script bug/);
  assert.match((await message(emulator, 'typo')).error.message, /unknown reply key "txt"/);
  assert.deepEqual(
    emulator.violations.map(({ rule }) => rule),
    ['no-rule', 'script-error', 'script-error'],
  );
});

const BAD_RULES = [
  [[{ when: { usr: 'x' }, reply: 'y' }], /rules\.0\.when\.usr: unknown key/],
  [[{ reply: 'y', latencyMs: 5 }], /rules\.0\.latencyMs: unknown key \(a knob/],
  [[{ reply: 'y', knobs: { latency: 5 } }], /rules\.0\.knobs\.latency: unknown knob/],
  [[{ reply: 'y' }, { when: {} }], /rules\.1: needs a "reply"/],
  [[{ when: { user: { regex: '(' } }, reply: 'y' }], /rules\.0\.when\.user: .*regular expression/],
  [[{ when: { user: 5 }, reply: 'y' }], /rules\.0\.when\.user: must be/],
  [[{ times: -1, reply: 'y' }], /rules\.0\.times/],
  [[{ when: { turn: '1' }, reply: 'y' }], /rules\.0\.when\.turn: must be/],
  [{}, /must be an array/],
];
for (const [rules, wanted] of BAD_RULES) {
  test(`bad rules are refused: ${wanted.source}`, async () => {
    await assert.rejects(startEmulator({ rules }), (error) => {
      assert.ok(error instanceof TypeError);
      assert.match(error.message, wanted);
      return true;
    });
  });
}

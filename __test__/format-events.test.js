import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCall } from '../emulator/index.js';
import { KernelError, ModelError, ResourceError, createAgent } from '../index.js';
import { collect } from './support/boundary.js';
import { gatewayFor, tool } from './support/gateway.js';

/** An agent whose streams are events, and a function that reads one. */
async function eventsFor(t, options) {
  const gateway = await gatewayFor(t, { streamFormat: 'events', ...options });
  return {
    ...gateway,
    read: (input, more) => collect(gateway.session.send(input, more)),
  };
}

const typesOf = (events) => events.map(({ type }) => type);

test('format: a result belongs to a call that was told', async (t) => {
  const { read } = await eventsFor(t, {
    // The answer breaks off within the input of its call.
    rules: [
      {
        reply: toolCall('save', { path: 'a/b/c' }, { id: 'call_1', text: 'Let me.', fragments: 6 }),
        knobs: { truncateAfter: 8 },
      },
    ],
    tools: [tool('save', () => 'saved')],
  });
  const events = await read('go');
  const called = events.filter(({ type }) => type === 'tool_call');
  const ended = events.filter(({ type }) => type === 'tool_result');
  assert.deepEqual(
    ended.map(({ toolUseId }) => toolUseId),
    called.map(({ toolUseId }) => toolUseId),
  );
  assert.deepEqual(typesOf(events).slice(-2), ['error', 'session_idle']);
});

test('format: a call is told once, with its whole input', async (t) => {
  const input = { lines: Array.from({ length: 50 }, (_, at) => `line ${at}`) };
  const { read } = await eventsFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Done.' },
      { reply: toolCall('save', input, { fragments: 50 }) },
    ],
    knobs: { chunkDelayMs: 4 },
    tools: [tool('save', () => ({ saved: 1 }))],
  });
  const events = await read('go');
  const calls = events.filter(({ type }) => type === 'tool_call');
  assert.deepEqual(
    calls.map((call) => call.input),
    [input],
  );
});

test('format: the error of an event is the error that throwOnError rejects with', async (t) => {
  const { session, read } = await eventsFor(t, { rules: { status: 401 } });
  const [told] = (await read('one')).filter(({ type }) => type === 'error');
  const events = [];
  const reading = (async () => {
    for await (const event of session.send('two', { throwOnError: true })) events.push(event);
  })();
  await assert.rejects(reading, (error) => {
    for (const one of [error, told.error]) {
      assert.ok(one instanceof ModelError && one instanceof KernelError && one instanceof Error);
      assert.deepEqual([one.name, one.code, one.status], ['ModelError', 'E_MODEL_AUTH', 401]);
      assert.deepEqual(one.details, error.details);
    }
    return true;
  });
  assert.deepEqual(typesOf(events), ['error', 'session_idle']);
});

test('format: errors of other classes keep their class and cause', async (t) => {
  const cause = new Error('the hook failed');
  const onUserMessage = () => Promise.reject(cause);
  const { read } = await eventsFor(t, { rules: 'ok', hooks: { onUserMessage } });
  const [{ error }] = await read('hi');
  assert.deepEqual([error.name, error.code], ['HookError', 'E_HOOK']);
  assert.equal(error.cause, cause);

  const agent = createAgent({ envId: 'e', model: 'glm', streamFormat: 'events' });
  const session = await agent.startSession({ userId: 'ann' });
  const hasKey = process.env.TCB_API_KEY || process.env.CLOUDBASE_APIKEY;
  if (!hasKey) {
    const [missing, idle] = await collect(session.send('hi'));
    assert.ok(missing.error instanceof ResourceError);
    assert.deepEqual([idle.type, idle.reason], ['session_idle', 'error']);
  }
  await agent.close();
});

test('format: texts come in pieces and then whole, block by block', async (t) => {
  const blocks = [
    { type: 'text', text: 'One.' },
    { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
    { type: 'text', text: 'Two.' },
  ];
  const { read } = await eventsFor(t, {
    rules: [{ when: { hasToolResult: true }, reply: text('Three.') }, { reply: { blocks } }],
    tools: [tool('look', () => 'seen')],
  });
  const events = await read('go');
  const whole = events.filter(({ type }) => type === 'message_complete');
  assert.deepEqual(
    whole.map((event) => event.text),
    ['One.', 'Two.', 'Three.'],
  );
  const pieces = events.filter(({ type }) => type === 'message_delta');
  assert.equal(pieces.map((event) => event.text).join(''), 'One.Two.Three.');
  assert.equal(events.filter(({ type }) => type === 'session_idle').length, 1);
});

test('format: a stream that is not to grow tells each text once', async (t) => {
  const { read } = await eventsFor(t, {
    rules: text(['Hel', 'lo.']),
    stream: false,
  });
  assert.deepEqual(await read('hi'), [
    { type: 'message_delta', text: 'Hello.' },
    { type: 'message_complete', text: 'Hello.' },
    { type: 'session_idle', reason: 'completed', stopReason: 'end_turn' },
  ]);
});

test('format: a limit ends with the reason of an error, and says which', async (t) => {
  const { read } = await eventsFor(t, {
    rules: [{ reply: toolCall('save', {}) }],
    tools: [tool('save', () => 'saved')],
    limits: { maxTurns: 1 },
  });
  assert.deepEqual((await read('go')).at(-1), {
    type: 'session_idle',
    reason: 'error',
    stopReason: 'max_turns',
  });
});

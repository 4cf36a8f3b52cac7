import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';

import { text, toolCalls } from '../emulator/index.js';
import { endsOf, errorOf, errorsOf, idleOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn, textIn, tool } from './support/gateway.js';

/** Whether nothing was said since the results. */
const afterTool = ({ messages }) => messages.at(-1).content.at(-1).type === 'tool_result';
const TURN = {
  rules: [
    { when: afterTool, reply: text('It is {{toolResult}}.') },
    {
      when: { user: 'time' },
      reply: {
        text: 'Let me.',
        toolCalls: [{ id: 'toolu_1', name: 'now', input: { zone: 'CST' } }],
      },
    },
    { reply: text('You said: {{user}}') },
  ],
  tools: [tool('now', () => 'noon')],
};

/** Hooks that note their name and what they got. */
function noting(log, overrides = {}) {
  const names = [
    'onSessionStart',
    'onSessionEnd',
    'onUserMessage',
    'onToolStart',
    'onToolEnd',
    'onAgentMessage',
  ];
  const hook = (name) => (context) => {
    log.push([name, context]);
    return overrides[name]?.(context);
  };
  return Object.fromEntries(names.map((name) => [name, hook(name)]));
}

test('hooks: each is called in its place, with its context', async (t) => {
  const log = [];
  const { session, send } = await gatewayFor(t, { ...TURN, hooks: noting(log) });
  await send('time?');
  await send('hello');
  await session.close();
  assert.deepEqual(
    log.map(([name]) => name),
    [
      'onSessionStart',
      'onUserMessage',
      'onAgentMessage',
      'onToolStart',
      'onToolEnd',
      'onAgentMessage',
      'onUserMessage',
      'onAgentMessage',
      'onSessionEnd',
    ],
  );
  const who = { conversationId: session.id, userId: 'ann' };
  assert.deepEqual(log[0][1], { ...who, envId: 'test-env' });
  assert.deepEqual(log[1][1], { ...who, prompt: 'time?' });
  assert.deepEqual(log[2][1], { ...who, text: 'Let me.' });
  const { signal, idempotencyKey, ...start } = log[3][1];
  assert.ok(signal instanceof AbortSignal);
  assert.equal(typeof idempotencyKey, 'string');
  const call = {
    ...who,
    envId: 'test-env',
    toolUseId: 'toolu_1',
    toolName: 'now',
    input: { zone: 'CST' },
  };
  assert.deepEqual(start, call);
  const { signal: atEnd, idempotencyKey: same, ...end } = log[4][1];
  assert.ok(atEnd instanceof AbortSignal);
  assert.equal(same, idempotencyKey);
  assert.deepEqual(end, { ...call, output: 'noon', isError: false });
  assert.deepEqual(log.at(-1)[1], { ...who, envId: 'test-env' });
});

test('hooks: modifiedPrompt is what is sent, and what later turns remember', async (t) => {
  const hooks = { onUserMessage: async ({ prompt }) => ({ modifiedPrompt: `${prompt} (please)` }) };
  const { session, send, messages } = await gatewayFor(t, { ...TURN, hooks });
  assert.equal(textOf(await send('hello')), 'You said: hello (please)');
  assert.equal((await session.prompt('bye')).text, 'You said: bye (please)');
  assert.deepEqual(messages(-1).map(textIn), [
    'hello (please)',
    'You said: hello (please)',
    'bye (please)',
  ]);
});

test('hooks: updatedOutput is what the model, the stream and later turns see', async (t) => {
  for (const updated of ['hidden', { hidden: true }, 0, false]) {
    const hooks = {
      onToolEnd: ({ output }) => (assert.equal(output, 'noon'), { updatedOutput: updated }),
    };
    const { send, messages } = await gatewayFor(t, { ...TURN, hooks });
    const elements = await send('time?');
    assert.deepEqual(endsOf(elements)[0].slice(1), ['completed', updated]);
    const told = typeof updated === 'string' ? updated : JSON.stringify(updated);
    assert.equal(resultsIn(messages(-1)[2])[0][1], told);
    await send('and more');
    assert.doesNotMatch(JSON.stringify(messages(-1)), /noon/);
  }
});

test('hooks: onToolEnd is told of failures, and its output keeps them failures', async (t) => {
  const seen = [];
  const hooks = {
    onToolEnd: ({ output, isError }) => (
      seen.push([output, isError]),
      { updatedOutput: 'softer words' }
    ),
  };
  const fails = tool('now', () => {
    throw new Error('hard words');
  });
  const { send, messages } = await gatewayFor(t, { ...TURN, hooks, tools: [fails] });
  await send('time?');
  assert.deepEqual(seen, [['hard words', true]]);
  assert.deepEqual(resultsIn(messages(-1)[2]), [['toolu_1', 'softer words', true]]);
});

test('hooks: returning nothing, null or an empty object changes nothing', async (t) => {
  for (const value of [
    undefined,
    null,
    {},
    { modifiedPrompt: undefined, updatedOutput: undefined },
  ]) {
    const hooks = noting(
      [],
      Object.fromEntries(
        ['onUserMessage', 'onToolEnd', 'onToolStart'].map((name) => [name, () => value]),
      ),
    );
    const { send } = await gatewayFor(t, { ...TURN, hooks });
    assert.equal(textOf(await send('time?')), 'Let me.It is noon.');
  }
});

const FAILS = {
  throws: () => {
    throw new TypeError('not today');
  },
  rejects: async () => {
    throw new TypeError('not today');
  },
};
/** How many requests were made and whether the tool ran when a hook failed. */
const STOPS = {
  onSessionStart: [0, 0],
  onUserMessage: [0, 0],
  onToolStart: [1, 0],
  onToolEnd: [1, 1],
};

for (const [name, [requests, runs]] of Object.entries(STOPS)) {
  for (const [how, hook] of Object.entries(FAILS)) {
    test(`hooks: ${name} that ${how} fails the run, and the session can go on`, async (t) => {
      let fails = true;
      let ran = 0;
      const hooks = { [name]: (context) => (fails ? hook(context) : undefined) };
      const { session, send, emulator, messages } = await gatewayFor(t, {
        ...TURN,
        hooks,
        tools: [tool('now', () => ((ran += 1), 'noon'))],
      });
      const elements = await send('time?');
      const error = errorOf(elements);
      assert.deepEqual([error.code, error.name, error.retryable], ['E_HOOK', 'HookError', false]);
      assert.match(error.message, new RegExp(`${name}.*not today`));
      assert.equal(idleOf(elements).stopReason, 'error');
      assert.deepEqual([emulator.requests.length, ran], [requests, runs]);
      await assert.rejects(session.prompt('time?'), (thrown) => {
        assert.equal(thrown.code, 'E_HOOK');
        return thrown.cause instanceof TypeError && thrown.cause.message === 'not today';
      });
      fails = false;
      assert.match(textOf(await send('hello')), /hello$/);
      const results = messages(-1).flatMap(resultsIn);
      assert.ok(results.every(([, told, isError]) => (runs ? told === 'noon' : isError)));
    });
  }
}

for (const [name, value] of [
  ['onUserMessage', 'a text'],
  ['onUserMessage', { modifiedPrompt: '' }],
  ['onUserMessage', { modifiedPrompt: 5 }],
  ['onToolStart', 42],
  ['onToolEnd', [1]],
]) {
  test(`hooks: ${name} that returns ${JSON.stringify(value)} fails the run`, async (t) => {
    const { send } = await gatewayFor(t, { ...TURN, hooks: { [name]: () => value } });
    const error = errorOf(await send('time?'));
    assert.equal(error.code, 'E_HOOK');
    assert.match(error.message, new RegExp(name));
  });
}

for (const [how, hook] of Object.entries(FAILS)) {
  test(`hooks: observers that ${how === 'throws' ? 'throw' : 'reject'} change nothing`, async (t) => {
    const hooks = { onAgentMessage: hook, onSessionEnd: hook };
    const { session, send } = await gatewayFor(t, { ...TURN, hooks });
    const elements = await send('time?');
    assert.equal(textOf(elements), 'Let me.It is noon.');
    assert.deepEqual(errorsOf(elements), []);
    await session.close();
  });
}

test('hooks: a hook is waited for before the next step', async (t) => {
  const log = [];
  const slow = (name) => async () => {
    await new Promise((resolve) => setImmediate(resolve));
    log.push(name);
  };
  const { send } = await gatewayFor(t, {
    ...TURN,
    hooks: {
      onUserMessage: slow('user'),
      onToolStart: slow('start'),
      onToolEnd: slow('end'),
      onAgentMessage: slow('text'),
    },
    tools: [tool('now', () => (log.push('tool'), 'noon'))],
  });
  await send('time?');
  assert.deepEqual(log, ['user', 'text', 'start', 'tool', 'end', 'text']);
});

const SCHEMAS = {
  'a JSON Schema': { type: 'object', required: ['city'] },
  'a zod schema': z.object({ city: z.string() }),
};

for (const [name, parameters] of Object.entries(SCHEMAS)) {
  test(`hooks: a call that breaks ${name} is no start of a tool`, async (t) => {
    const log = [];
    const { send } = await gatewayFor(t, {
      ...TURN,
      hooks: noting(log),
      tools: [tool('now', () => 'noon', { parameters })],
    });
    const elements = await send('time?');
    assert.equal(endsOf(elements)[0][1], 'failed');
    assert.deepEqual(
      log.filter(([hook]) => hook.startsWith('onTool')),
      [],
    );
  });
}

test('hooks: a call of an unknown tool is no start of a tool', async (t) => {
  const log = [];
  const { send } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'ok' },
      { reply: toolCalls([{ name: 'nope' }]) },
    ],
    hooks: noting(log),
  });
  await send('go');
  assert.deepEqual(
    log.map(([name]) => name),
    ['onSessionStart', 'onUserMessage', 'onAgentMessage'],
  );
});

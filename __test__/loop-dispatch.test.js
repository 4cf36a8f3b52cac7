import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { endsOf, idleOf, phasesOf, readStream, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { gatewayFor, resultsIn, tool } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };

/** An answer that calls tools by name; the ids are `toolu_0`, `toolu_1`, … */
const calling = (...names) => ({
  reply: toolCalls(names.map((name, at) => ({ id: `toolu_${at}`, name, input: { at } }))),
});

/** Tools that note what runs beside what. */
class Watch {
  running = 0;
  most = 0;
  log = [];

  tool(name, work, more) {
    return tool(
      name,
      async (input) => {
        this.running += 1;
        this.most = Math.max(this.most, this.running);
        this.log.push(`${name}${input.at} starts beside ${this.running - 1}`);
        try {
          return await work(input);
        } finally {
          this.running -= 1;
          this.log.push(`${name}${input.at} ends`);
        }
      },
      more,
    );
  }
}

/** A function that waits until so many are in it. */
function meeting(count) {
  const met = deferred();
  let here = 0;
  return async () => {
    if ((here += 1) === count) met.resolve();
    await met.promise;
    return 'met';
  };
}

test('loop: read-only tools of one answer run together', async (t) => {
  const watch = new Watch();
  // Each waits for the others: one after the other they would never end.
  const meet = meeting(3);
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('peek', 'peek', 'look')],
    tools: ['peek', 'look'].map((name) => watch.tool(name, meet, { readOnly: true })),
  });
  const elements = await send('go');
  assert.equal(watch.most, 3);
  assert.equal(textOf(elements), 'Done.');
  assert.deepEqual(
    resultsIn(messages(-1)[2]).map(([id]) => id),
    ['toolu_0', 'toolu_1', 'toolu_2'],
  );
});

test('loop: results are sent in call order, and told when they are known', async (t) => {
  const gates = [deferred(), deferred(), deferred()];
  const { session, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('peek', 'peek', 'peek')],
    tools: [tool('peek', ({ at }) => gates[at].promise, { readOnly: true })],
  });
  const elements = [];
  const next = { started: () => gates[2], toolu_2: () => gates[0], toolu_0: () => gates[1] };
  for await (const element of session.send('go')) {
    elements.push(element);
    const { sessionUpdate, phase, toolCallId, status } = element;
    // The last one first, then each after the one before it was told.
    if (phase === 'tool_executing') next.started().resolve('2');
    if (sessionUpdate === 'tool_call_update' && status === 'completed') {
      next[toolCallId]?.().resolve(toolCallId === 'toolu_2' ? '0' : '1');
    }
  }
  assert.deepEqual(
    endsOf(elements).map(([id, , result]) => [id, result]),
    [
      ['toolu_2', '2'],
      ['toolu_0', '0'],
      ['toolu_1', '1'],
    ],
  );
  assert.deepEqual(
    resultsIn(messages(-1)[2]).map(([id, told]) => [id, told]),
    [
      ['toolu_0', '0'],
      ['toolu_1', '1'],
      ['toolu_2', '2'],
    ],
  );
});

test('loop: other tools run alone and in order', async (t) => {
  const watch = new Watch();
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const { send } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('save', 'save', 'send')],
    tools: [watch.tool('save', turn), watch.tool('send', turn)],
  });
  await send('go');
  assert.deepEqual(watch.log, [
    'save0 starts beside 0',
    'save0 ends',
    'save1 starts beside 0',
    'save1 ends',
    'send2 starts beside 0',
    'send2 ends',
  ]);
});

test('loop: a tool that changes something waits for those before and holds those after', async (t) => {
  const watch = new Watch();
  const first = meeting(2);
  const second = meeting(2);
  const { send } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('peek', 'peek', 'save', 'peek', 'peek')],
    tools: [
      watch.tool('peek', ({ at }) => (at < 2 ? first() : second()), { readOnly: true }),
      watch.tool('save', () => 'saved'),
    ],
  });
  await send('go');
  const saved = watch.log.indexOf('save2 starts beside 0');
  assert.ok(saved > 0);
  assert.equal(watch.log[saved + 1], 'save2 ends');
  assert.ok(watch.log.slice(0, saved).every((line) => /^peek[01]/.test(line)));
  assert.ok(watch.log.slice(saved + 2).every((line) => /^peek[34]/.test(line)));
});

for (const toolConcurrency of [1, 2, 4]) {
  test(`loop: at most ${toolConcurrency} read-only tools run at once`, async (t) => {
    const watch = new Watch();
    const meet = meeting(toolConcurrency);
    const { send } = await gatewayFor(t, {
      rules: [THEN_DONE, calling(...Array(8).fill('peek'))],
      limits: { toolConcurrency },
      tools: [
        watch.tool(
          'peek',
          async () => {
            await meet();
            await new Promise((resolve) => setImmediate(resolve));
          },
          { readOnly: true },
        ),
      ],
    });
    const elements = await send('go');
    assert.equal(watch.most, toolConcurrency);
    assert.equal(endsOf(elements).length, 8);
  });
}

test('loop: ten read-only tools run at once by default', async (t) => {
  const watch = new Watch();
  const meet = meeting(10);
  const { send } = await gatewayFor(t, {
    rules: [THEN_DONE, calling(...Array(25).fill('peek'))],
    tools: [watch.tool('peek', meet, { readOnly: true })],
  });
  const elements = await send('go');
  assert.equal(watch.most, 10);
  assert.equal(endsOf(elements).length, 25);
});

test('loop: a call of an unknown tool is an error result, the others run', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('nope', 'save')],
    tools: [tool('save', () => 'saved')],
  });
  const elements = await send('go');
  assert.deepEqual(phasesOf(elements), [
    'preparing',
    'model_responding',
    'tool_executing save',
    'model_responding',
    'idle',
  ]);
  const [[, told, isError], second] = resultsIn(messages(-1)[2]);
  assert.equal(isError, true);
  assert.match(told, /No such tool available: nope/);
  assert.deepEqual(second, ['toolu_1', 'saved', false]);
});

test('loop: an agent without tools answers a call all the same', async (t) => {
  const { send, emulator } = await gatewayFor(t, { rules: [THEN_DONE, calling('nope')] });
  const elements = await send('go');
  assert.equal(textOf(elements), 'Done.');
  assert.equal(emulator.requests[0].body.tools, undefined);
});

test('loop: calls of many rounds each run once', async (t) => {
  const seen = [];
  const { send, emulator } = await gatewayFor(t, {
    rules: [
      { when: { turn: 30 }, reply: 'Done.' },
      { reply: (_, { turn }) => toolCalls([{ name: 'step', input: { turn } }]) },
    ],
    tools: [tool('step', ({ turn }) => seen.push(turn))],
  });
  const elements = await send('go');
  assert.deepEqual(
    seen,
    Array.from({ length: 30 }, (_, at) => at),
  );
  assert.equal(emulator.requests.length, 31);
  assert.equal(idleOf(elements).stopReason, 'end_turn');
});

test('loop: tools of two sessions run beside each other', async (t) => {
  const meet = meeting(2);
  const { agent } = await gatewayFor(t, {
    rules: [THEN_DONE, calling('save')],
    tools: [tool('save', meet)],
  });
  const talk = async (userId) => {
    const session = await agent.startSession({ userId });
    return textOf(await readStream(session.send('go')));
  };
  assert.deepEqual(await Promise.all([talk('ann'), talk('bob')]), ['Done.', 'Done.']);
});

test('loop: abort tells running tools, and their late results are dropped', async (t) => {
  const running = deferred();
  const told = deferred();
  const { session, send, messages } = await gatewayFor(t, {
    rules: [{ when: { user: 'more' }, reply: 'fine' }, calling('peek', 'peek')],
    tools: [
      tool(
        'peek',
        ({ at }, { signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              if (at === 1) told.resolve();
              resolve('too late');
            });
            if (at === 1) running.resolve();
          }),
        { readOnly: true },
      ),
    ],
  });
  const reading = readStream(session.send('go'));
  await running.promise;
  await session.abort();
  await told.promise;
  const elements = await reading;
  assert.equal(idleOf(elements).stopReason, 'aborted');
  await send('more');
  assert.doesNotMatch(JSON.stringify(messages(-1)), /too late/);
});

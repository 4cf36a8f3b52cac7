/** Large results and slow consumers: an update that waits holds nobody else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { both } from './support/format-protocols.js';
import { checkStream, endsOf, idleOf, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { gatewayFor, resultsIn, tool } from './support/gateway.js';

const CALLS = 40;
const LENGTH = 99_000;
const IN_TIME = { timeout: 120_000 };

const idOf = (at) => `call_${at}`;
/** A result that tells which one it is at both ends. */
const resultOf = (at) => `<${at}>`.padEnd(LENGTH - 10, 'x').concat(`</${at}>`.padStart(10, 'x'));
const RULES = [
  { when: { hasToolResult: true }, reply: text('Done.') },
  {
    reply: toolCalls(
      Array.from({ length: CALLS }, (_, at) => ({ id: idOf(at), name: 'read', input: { at } })),
    ),
  },
];
const WANTED = Array.from({ length: CALLS }, (_, at) => [idOf(at), resultOf(at)]);

/** Reads a stream with a wait before each element. */
async function readSlowly(stream, wait) {
  const elements = [];
  for await (const element of stream) {
    elements.push(element);
    await wait(element);
  }
  return elements;
}

const CONSUMERS = {
  'a fast consumer': () => undefined,
  'a consumer that takes its time': () => new Promise((resolve) => setTimeout(resolve, 10)),
  'a consumer that stops at each result': ({ status }) =>
    new Promise((resolve) => setTimeout(resolve, status === 'completed' ? 50 : 0)),
};

for (const [name, wait] of Object.entries(CONSUMERS)) {
  for (const toolConcurrency of [10, CALLS]) {
    test(
      `waiting: large results at once, ${toolConcurrency} tools, ${name}`,
      IN_TIME,
      async (t) => {
        const { session, messages } = await gatewayFor(t, {
          rules: RULES,
          tools: [tool('read', ({ at }) => resultOf(at), { readOnly: true })],
          limits: { toolConcurrency },
        });
        const elements = await readSlowly(session.send('go'), wait);
        checkStream(elements);
        assert.equal(idleOf(elements).stopReason, 'end_turn');
        assert.equal(textOf(elements), 'Done.');
        const told = endsOf(elements).map(([id, status, result]) => [id, [status, result]]);
        assert.equal(told.length, CALLS);
        assert.deepEqual(
          new Map(told),
          new Map(WANTED.map(([id, result]) => [id, ['completed', result]])),
        );
        assert.deepEqual(
          resultsIn(messages(1)[2]),
          WANTED.map((pair) => [...pair, false]),
        );
      },
    );
  }
}

both('waiting: prompt() reads large results by itself', async (t, protocol, agentFor) => {
  const { session, messages } = await agentFor({
    rules: RULES,
    tools: [tool('read', ({ at }) => resultOf(at), { readOnly: true })],
  });
  assert.equal((await session.prompt('go')).text, 'Done.');
  assert.deepEqual(
    resultsIn(messages(1)[2]).map(([id, told]) => [id, told]),
    WANTED,
  );
});

test(
  'waiting: results that end in the reverse order keep that of the calls',
  IN_TIME,
  async (t) => {
    const gates = Array.from({ length: CALLS }, deferred);
    let started = 0;
    const read = async ({ at }) => {
      started += 1;
      if (started === CALLS) gates.at(-1).resolve();
      await gates[at].promise;
      gates[at - 1]?.resolve();
      return resultOf(at);
    };
    const { session, messages } = await gatewayFor(t, {
      rules: RULES,
      tools: [tool('read', read, { readOnly: true })],
      limits: { toolConcurrency: CALLS },
    });
    const elements = await readSlowly(
      session.send('go'),
      CONSUMERS['a consumer that takes its time'],
    );
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    assert.deepEqual(
      resultsIn(messages(1)[2]),
      WANTED.map((pair) => [...pair, false]),
    );
  },
);

test('waiting: an abort ends a run whose updates nobody reads', IN_TIME, async (t) => {
  const { session, send } = await gatewayFor(t, {
    rules: [{ when: { user: 'more' }, reply: 'fine' }, ...RULES],
    tools: [tool('read', ({ at }) => resultOf(at), { readOnly: true })],
  });
  const stream = session.send('go');
  const elements = [];
  for (;;) {
    const { value } = await stream.next();
    elements.push(value);
    if (value.status === 'completed') break;
  }
  // Time for the other results to fill what may wait.
  await new Promise((resolve) => setTimeout(resolve, 300));
  await session.abort('enough');
  for await (const element of stream) elements.push(element);
  checkStream(elements);
  assert.equal(idleOf(elements).stopReason, 'aborted');
  assert.equal(textOf(await send('more')), 'fine');
});

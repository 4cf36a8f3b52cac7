import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, text } from '../emulator/index.js';
import {
  chunksOf,
  endsOf,
  errorOf,
  idleOf,
  restartsOf,
  textOf,
  thoughtOf,
} from './support/gateway-elements.js';
import { SOON, gatewayFor, resultsIn, textIn, tool } from './support/gateway.js';

const BREAKS = {
  'a reset connection': [{ resetAfter: 4 }, 'network'],
  'a truncated body': [{ truncateAfter: 4 }, 'truncated'],
  'an error event': [{ errorAfter: { events: 4 } }, 'error_event'],
  'a stall': [{ stallAfter: 4 }, 'timeout'],
};

for (const [name, [knobs, reason]] of Object.entries(BREAKS)) {
  test(`restart: ${name} after text voids the message and starts a new one`, async (t) => {
    const { emulator, send, messages } = await gatewayFor(t, {
      rules: [{ times: 1, reply: text(['Lost ', 'words', '!']), knobs }, { reply: 'Kept words' }],
      limits: { idleMs: 300 },
    });
    const elements = await send('hi');
    const chunks = chunksOf(elements);
    assert.deepEqual(chunks.map(({ content }) => content.text).join('|'), 'Lost |words|Kept words');
    const [restart, ...more] = restartsOf(elements);
    assert.deepEqual(more, []);
    assert.equal(restart.phase, 'model_responding');
    assert.equal(typeof restart.timestamp, 'number');
    assert.equal(restart.restartReason, reason);
    assert.equal(restart.messageId, chunks[0].messageId);
    assert.equal(chunks[1].messageId, chunks[0].messageId);
    assert.notEqual(chunks[2].messageId, chunks[0].messageId);
    const place = elements.indexOf(restart);
    assert.ok(elements.indexOf(chunks[1]) < place && place < elements.indexOf(chunks[2]));
    assert.equal(emulator.requests.length, 2);
    assert.deepEqual(messages(1), messages(0));
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    await send('more');
    assert.equal(textIn(messages(-1)[1]), 'Kept words');
  });
}

test('restart: at most twice, then the error is told', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } }],
  });
  const elements = await send('hi');
  assert.equal(restartsOf(elements).length, 2);
  assert.equal(emulator.requests.length, 3);
  const error = errorOf(elements);
  assert.equal(error.code, 'E_MODEL_NETWORK');
  assert.equal(error.details.attempts, 3);
  assert.equal(new Set(chunksOf(elements).map(({ messageId }) => messageId)).size, 3);
});

test("restart: 'never' tells the error after the first text", async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: 'x' },
    ],
    model: { restart: 'never' },
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Lost words');
  assert.equal(errorOf(elements).details.attempts, 1);
  assert.equal(emulator.requests.length, 1);
});

test("restart: 'never' still allows silent retries before any text", async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: httpError(503, {}, SOON) }, { reply: 'here' }],
    model: { restart: 'never' },
  });
  assert.equal(textOf(await send('hi')), 'here');
  assert.equal(emulator.requests.length, 2);
});

test('restart: a refusal on the second attempt ends the run', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: httpError(401) },
    ],
  });
  const elements = await send('hi');
  const error = errorOf(elements);
  assert.deepEqual([error.code, error.details.attempts], ['E_MODEL_AUTH', 2]);
  assert.equal(textOf(elements), '');
  assert.equal(emulator.requests.length, 2);
});

test('restart: thinking is void like text', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: { thinking: 'Lost thought', text: 'x' }, knobs: { resetAfter: 3 } },
      { reply: { thinking: 'Kept thought', text: 'Kept.' } },
    ],
  });
  const elements = await send('hi');
  assert.equal(restartsOf(elements).length, 1);
  assert.equal(thoughtOf(elements), 'Kept thought');
  await send('more');
  assert.doesNotMatch(JSON.stringify(messages(-1)), /Lost/);
});

test('restart: the second text has its own message id though the gateway repeats one', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words'], { id: 'msg_same' }), knobs: { resetAfter: 4 } },
      { reply: text('Kept', { id: 'msg_same' }) },
    ],
  });
  const elements = await send('hi');
  const [lost, , kept] = chunksOf(elements);
  assert.equal(restartsOf(elements)[0].messageId, lost.messageId);
  assert.notEqual(kept.messageId, lost.messageId);
});

/** An answer with a call that breaks off behind the call's input. */
const LOST_CALL = (id) => ({
  times: 1,
  reply: { text: 'Let me.', toolCalls: [{ id, name: 'save', input: { text: 'lost' } }] },
  knobs: { resetAfter: 8 },
});

for (const [name, ids] of Object.entries({
  'its own id': ['toolu_lost', 'toolu_kept'],
  'the same id again': ['toolu_same', 'toolu_same'],
})) {
  test(`restart: a call that was announced but not run ends as failed (${name})`, async (t) => {
    const inputs = [];
    const { send, messages } = await gatewayFor(t, {
      rules: [
        LOST_CALL(ids[0]),
        { when: { hasToolResult: true }, reply: 'Done.' },
        { reply: { toolCalls: [{ id: ids[1], name: 'save', input: { text: 'kept' } }] } },
      ],
      tools: [tool('save', (input) => (inputs.push(input), 'saved'))],
    });
    // The stream's own rules hold: each id is announced once and ends once.
    const elements = await send('hi');
    assert.deepEqual(inputs, [{ text: 'kept' }]);
    assert.deepEqual(
      endsOf(elements).map(([, status]) => status),
      ['failed', 'completed'],
    );
    const results = resultsIn(messages(-1)[2]);
    assert.deepEqual(
      results.map(([, told]) => told),
      ['saved'],
    );
  });
}

test('restart: an answer whose tools ran is never repeated', async (t) => {
  let runs = 0;
  const { emulator, send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: { toolCalls: [{ id: 'toolu_1', name: 'save' }] } },
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: 'Done.' },
    ],
    tools: [tool('save', () => (runs += 1))],
  });
  const elements = await send('hi');
  assert.equal(runs, 1);
  assert.deepEqual(
    emulator.requests.map(({ body }) => body.messages.length),
    [1, 3, 3],
  );
  assert.equal(textOf(elements), 'Done.');
});

test('restart: with stream: false a void block is never shown as part of the answer', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: 'Kept' },
    ],
    stream: false,
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Kept');
  assert.deepEqual(
    chunksOf(elements).map(({ content }) => content.text),
    ['Kept'],
  );
});

test('restart: prompt() gives the text of the attempt that worked', async (t) => {
  const { session } = await gatewayFor(t, {
    rules: [
      { times: 1, reply: text(['Lost ', 'words']), knobs: { resetAfter: 4 } },
      { reply: 'Kept' },
    ],
  });
  assert.equal((await session.prompt('hi')).text, 'Kept');
});

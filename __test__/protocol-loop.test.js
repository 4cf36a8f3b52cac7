import assert from 'node:assert/strict';

import { httpError, text, thinking, toolCall, toolCalls } from '../emulator/index.js';
import {
  chunksOf,
  endsOf,
  errorOf,
  errorsOf,
  idleOf,
  phasesOf,
  readStream,
  restartsOf,
  textOf,
  thoughtOf,
} from './support/gateway-elements.js';
import { both } from './support/format-protocols.js';
import { deferred } from './support/boundary.js';
import { resultsIn, textIn, tool } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };

both('a text is streamed piece by piece', async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: text(['Hel', 'lo ', '北京😀'], { id: 'answer_1' }),
    systemPrompt: 'Be brief.',
  });
  const elements = await send('hi');
  assert.deepEqual(
    chunksOf(elements).map(({ content, messageId }) => [content.text, messageId]),
    [
      ['Hel', 'answer_1'],
      ['lo ', 'answer_1'],
      ['北京😀', 'answer_1'],
    ],
  );
  assert.deepEqual(phasesOf(elements), ['preparing', 'model_responding', 'idle']);
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  const [{ body, headers }] = emulator.requests;
  assert.equal(headers.authorization, `Bearer ${emulator.apiKey}`);
  assert.deepEqual([body.model, body.stream, body.max_tokens], ['glm', true, 32_000]);
  assert.match(JSON.stringify(body), /Be brief\./);
});

both('reasoning comes before the text and is told apart', async (t, protocol, agentFor) => {
  const { send, messages } = await agentFor({
    rules: [{ reply: thinking('Let me think. ', 'So it is.') }],
  });
  const elements = await send('why?');
  assert.equal(thoughtOf(elements), 'Let me think. ');
  assert.equal(textOf(elements), 'So it is.');
  const kinds = elements.map(({ sessionUpdate }) => sessionUpdate);
  assert.ok(
    kinds.lastIndexOf('agent_thought_chunk') < kinds.indexOf('agent_message_chunk'),
    'thoughts come first',
  );
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'So it is.');
});

both('a call runs, and its result goes back', async (t, protocol, agentFor) => {
  const inputs = [];
  const { send, messages, emulator } = await agentFor({
    rules: [
      { when: { tool: 'add' }, reply: 'The sum is {{toolResult}}.' },
      { reply: toolCall('add', { a: 1, b: 2 }, { id: 'call_1', text: 'I add.' }) },
    ],
    tools: [tool('add', ({ a, b }) => (inputs.push([a, b]), a + b))],
  });
  const elements = await send('1 + 2?');
  assert.deepEqual(inputs, [[1, 2]]);
  assert.deepEqual(endsOf(elements), [['call_1', 'completed', 3]]);
  assert.equal(textOf(elements), 'I add.The sum is 3.');
  assert.deepEqual(phasesOf(elements), [
    'preparing',
    'model_responding',
    'tool_executing add',
    'model_responding',
    'idle',
  ]);
  const [, answer, results] = messages(-1);
  assert.deepEqual(answer.content.at(-1).input, { a: 1, b: 2 });
  assert.equal(textIn(answer), 'I add.');
  assert.deepEqual(
    resultsIn(results).map(([id, told]) => [id, told]),
    [['call_1', '3']],
  );
  assert.match(JSON.stringify(emulator.requests[0].body.tools), /The tool add/);
});

both('reasoning within the tool loop does not spoil it', async (t, protocol, agentFor) => {
  const { send } = await agentFor({
    rules: [
      { when: { hasToolResult: true }, reply: thinking('Then so.', 'Done.') },
      { reply: toolCall('now', {}, { thinking: 'I need the time.', text: 'Let me.' }) },
    ],
    tools: [tool('now', () => 'noon')],
  });
  const elements = await send('time?');
  assert.equal(thoughtOf(elements), 'I need the time.Then so.');
  assert.equal(textOf(elements), 'Let me.Done.');
  assert.equal(textOf(await send('and now?')), 'Let me.Done.');
});

both('read-only calls run at once, and are answered in order', async (t, protocol, agentFor) => {
  const started = [];
  const allStarted = deferred();
  const work = async (input) => {
    if (started.push(input.at) === 3) allStarted.resolve();
    await allStarted.promise;
    return `did ${input.at}`;
  };
  const { send, messages } = await agentFor({
    rules: [
      THEN_DONE,
      {
        reply: toolCalls(
          [1, 2, 3].map((at) => ({ id: `call_${at}`, name: 'work', input: { at } })),
        ),
      },
    ],
    tools: [tool('work', work, { readOnly: true })],
  });
  await send('go');
  assert.deepEqual(started, [1, 2, 3]);
  assert.deepEqual(
    resultsIn(messages(-1)[2]).map(([id, told]) => [id, told]),
    [
      ['call_1', 'did 1'],
      ['call_2', 'did 2'],
      ['call_3', 'did 3'],
    ],
  );
});

both(
  'a failing, an unknown and a wrongly called tool are told to the model',
  async (t, protocol, agentFor) => {
    const strict = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
    const { send, messages } = await agentFor({
      rules: [
        THEN_DONE,
        {
          reply: toolCalls([
            { id: 'call_1', name: 'fail' },
            { id: 'call_2', name: 'nobody' },
            { id: 'call_3', name: 'strict', input: { a: 1 } },
          ]),
        },
      ],
      tools: [
        tool('fail', () => Promise.reject(new Error('the disk is full'))),
        tool('strict', () => 'ran', { parameters: strict }),
      ],
    });
    const elements = await send('go');
    assert.deepEqual(
      endsOf(elements).map(([id, status]) => [id, status]),
      [
        ['call_1', 'failed'],
        ['call_2', 'failed'],
        ['call_3', 'failed'],
      ],
    );
    const told = resultsIn(messages(-1)[2]).map(([, words]) => words);
    assert.match(told[0], /the disk is full/);
    assert.match(told[1], /No such tool.*nobody/);
    assert.match(told[2], /InputValidationError/);
    // A protocol without a mark for failures says it in words.
    for (const words of told) {
      if (protocol.name === 'openai') assert.match(words, /error/i);
    }
    assert.deepEqual(errorsOf(elements), []);
  },
);

both('a text is voided and started again when its stream breaks', async (t, protocol, agentFor) => {
  const { send, messages, emulator } = await agentFor({
    rules: [
      { times: 1, reply: text(['Lost ', 'words', '!']), knobs: { resetAfter: protocol.after(2) } },
      { reply: 'Kept.' },
    ],
  });
  const elements = await send('hi');
  const [restart, ...more] = restartsOf(elements);
  assert.deepEqual(more, []);
  assert.equal(restart.messageId, chunksOf(elements)[0].messageId);
  assert.equal(textOf(elements), 'Kept.');
  assert.equal(emulator.requests.length, 2);
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'Kept.');
});

both("restart: 'never' ends the run with what was shown", async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: [{ reply: text(['Lost ', 'words', '!']), knobs: { truncateAfter: protocol.after(2) } }],
    model: { restart: 'never' },
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Lost words');
  const error = errorOf(elements);
  assert.equal(error.code, 'E_MODEL_TRUNCATED');
  assert.equal(error.requestId, emulator.requests[0].id);
  assert.equal(emulator.requests.length, 1);
});

both('an abort closes the request and leaves a valid session', async (t, protocol, agentFor) => {
  const { session, send, emulator } = await agentFor({
    rules: [
      { times: 1, reply: text(['one ', 'two']), knobs: { stallAfter: protocol.after(1) } },
      { reply: 'again' },
    ],
  });
  const elements = [];
  for await (const element of session.send('hi')) {
    elements.push(element);
    if (element.sessionUpdate === 'agent_message_chunk') session.abort('enough');
  }
  const { stopReason, cause, reason } = idleOf(elements);
  assert.deepEqual([stopReason, cause, reason], ['aborted', 'abort', 'enough']);
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, true);
  assert.equal(textOf(await send('more')), 'again');
});

both('an abort while a tool runs answers the call later', async (t, protocol, agentFor) => {
  const running = deferred();
  const { session, send, messages } = await agentFor({
    rules: [
      { when: { user: 'go on' }, reply: 'Going on.' },
      {
        reply: toolCalls([
          { id: 'call_1', name: 'pay' },
          { id: 'call_2', name: 'pay' },
        ]),
      },
    ],
    tools: [tool('pay', () => (running.resolve(), new Promise(() => {})))],
  });
  const reading = readStream(session.send('pay'));
  await running.promise;
  await session.abort();
  assert.equal(idleOf(await reading).stopReason, 'aborted');
  assert.equal(textOf(await send('go on')), 'Going on.');
  const told = resultsIn(messages(-1)[2]).map(([id, words]) => [id, words]);
  assert.match(told[0][1], /interrupted/);
  assert.match(told[1][1], /not started/);
});

both('a refused key is told at once, without the key', async (t, protocol, agentFor) => {
  const { send, emulator } = await agentFor({
    rules: httpError(401, { message: 'no key emulator-key here' }),
  });
  const elements = await send('hi');
  const error = errorOf(elements);
  assert.deepEqual([error.code, error.status, error.retryable], ['E_MODEL_AUTH', 401, false]);
  assert.equal(error.requestId, emulator.requests[0].id);
  assert.equal(emulator.requests.length, 1);
  assert.doesNotMatch(JSON.stringify(elements), /emulator-key/);
});

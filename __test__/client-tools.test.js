/** Tools that the reader of the stream answers: the pause, and the run that goes on. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';

import { toolCall, toolCalls } from '../emulator/index.js';
import { InvalidConfigError, ResourceError, SessionError, createAgent } from '../index.js';
import {
  NOT_PENDING,
  RESOLVED,
  answer,
  assertError,
  callsThenRepeats,
  clientTool,
  openIn,
} from './support/client-tools.js';
import {
  assertEnd,
  assertRefused,
  collect,
  deferred,
  errorOf,
  nowhere,
} from './support/boundary.js';
import { endsOf, phasesOf, textOf } from './support/gateway-elements.js';
import { aborted, gatewayFor, resultsIn, tool } from './support/gateway.js';

/** An agent with client tools whose model calls each of them once. */
async function pausing(t, names, options = {}) {
  const gateway = await gatewayFor(t, {
    rules: callsThenRepeats(...names),
    tools: names.map((name) => clientTool(name)),
    ...options,
  });
  return { ...gateway, read: (input, more) => collect(gateway.session.send(input, more)) };
}

test('a call of a client tool ends the run, and its answer goes on with the turn', async (t) => {
  const { session, read, messages, emulator } = await pausing(t, ['pick']);
  const first = await read('go');
  const kinds = first.map(({ sessionUpdate, phase }) => phase ?? sessionUpdate);
  assert.deepEqual(kinds.slice(0, 3), ['preparing', 'model_responding', 'tool_call']);
  assert.deepEqual(kinds.slice(-3), ['tool_confirm', 'usage_update', 'idle']);
  assertEnd(first, { stopReason: 'awaiting_client_tool' });
  const open = first.find(({ sessionUpdate }) => sessionUpdate === 'tool_confirm');
  const turn = open.assistantMessageId;
  assert.deepEqual(open, {
    sessionUpdate: 'tool_confirm',
    toolCallId: 'toolu_1',
    assistantMessageId: turn,
    toolName: 'pick',
    input: { city: 'pick' },
    _meta: { oak: { kind: 'client_tool', assistantMessageId: turn } },
  });
  assert.equal(emulator.requests.length, 1);
  const second = await answer(session, 'toolu_1', { picked: 7 });
  assertEnd(second, { stopReason: 'end_turn' });
  assert.deepEqual(endsOf(second), [['toolu_1', 'completed', { picked: 7 }]]);
  assert.equal(textOf(second), 'Results: {"picked":7}');
  assert.deepEqual(phasesOf(second), ['preparing', 'model_responding', 'idle']);
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', '{"picked":7}', false]]);
  assert.equal(emulator.requests.length, 2);
});

test('a turn keeps its id over its pauses', async (t) => {
  const { session, read } = await pausing(t, ['one', 'two']);
  const first = await read('go');
  const [turn] = first.filter(({ toolName }) => toolName).map((el) => el.assistantMessageId);
  const second = await answer(session, 'toolu_1', 'x');
  const again = second.find(({ sessionUpdate }) => sessionUpdate === 'tool_confirm');
  assert.equal(again.assistantMessageId, turn);
});

test('FC-D4: three client tools of one message are answered in reverse order', async (t) => {
  const { session, read, messages, emulator } = await pausing(t, ['a', 'b', 'c']);
  const told = [
    ['toolu_1', 'a'],
    ['toolu_2', 'b'],
    ['toolu_3', 'c'],
  ];
  assert.deepEqual(
    openIn(await read('go')),
    told.map((call) => [...call, false]),
  );
  for (const at of [3, 2]) {
    const elements = await answer(session, `toolu_${at}`, `answer ${at}`);
    assertEnd(elements, { stopReason: 'awaiting_client_tool' });
    assert.deepEqual(endsOf(elements), [[`toolu_${at}`, 'completed', `answer ${at}`]]);
    assert.deepEqual(
      openIn(elements),
      told.slice(0, at - 1).map((call) => [...call, true]),
    );
    assert.equal(emulator.requests.length, 1, 'nothing is asked while a call is open');
  }
  assertEnd(await answer(session, 'toolu_1', 'answer 1'), { stopReason: 'end_turn' });
  assert.deepEqual(
    resultsIn(messages(1).at(-1)),
    [1, 2, 3].map((at) => [`toolu_${at}`, `answer ${at}`, false]),
  );
});

test('FC-D3: free tools beside a client tool run before the pause, and once', async (t) => {
  const ran = [];
  const free = (name) => tool(name, () => (ran.push(name), `${name} ran`));
  const { session, read, messages } = await pausing(t, ['first', 'ask', 'last'], {
    tools: [free('first'), clientTool('ask'), free('last')],
  });
  const elements = await read('go');
  assert.deepEqual(ran, ['first', 'last']);
  const at = (test) => elements.findIndex(test);
  const opened = at(({ sessionUpdate }) => sessionUpdate === 'tool_confirm');
  assert.ok(opened > at(({ toolCallId, result }) => toolCallId === 'toolu_3' && result));
  await answer(session, 'toolu_2', 'asked');
  assert.deepEqual(ran, ['first', 'last']);
  assert.deepEqual(resultsIn(messages(1).at(-1)), [
    ['toolu_1', 'first ran', false],
    ['toolu_2', 'asked', false],
    ['toolu_3', 'last ran', false],
  ]);
});

test('FC-D2: a call that was answered is not answered again', async (t) => {
  const { session, read, emulator } = await pausing(t, ['pick']);
  await read('go');
  await answer(session, 'toolu_1', 'one');
  for (const output of ['one', 'two']) {
    assertError(await answer(session, 'toolu_1', output), 'E_ALREADY_RESOLVED', RESOLVED);
  }
  const stream = session.respondToolUse({ toolUseId: 'toolu_1' }, { throwOnError: true });
  const error = await errorOf(collect(stream));
  assertRefused(error, ResourceError, 'E_ALREADY_RESOLVED');
  assert.equal(error.details.toolUseId, 'toolu_1');
  assert.equal(emulator.requests.length, 2);
});

test('of fifty answers at once one wins', async (t) => {
  const { session, read, messages, emulator } = await pausing(t, ['pick']);
  await read('go');
  const all = Array.from({ length: 50 }, (_, at) => answer(session, 'toolu_1', `answer ${at}`));
  const streams = await Promise.all(all);
  const won = streams.filter((elements) => elements.at(-1).stopReason === 'end_turn');
  assert.equal(won.length, 1);
  for (const elements of streams) {
    if (elements !== won[0]) assertError(elements, 'E_ALREADY_RESOLVED', RESOLVED);
  }
  assert.equal(emulator.requests.length, 2);
  const [[, text]] = resultsIn(messages(1).at(-1));
  assert.equal(endsOf(won[0])[0][2], text);
});

test('FC-D5: a new message supersedes what is open', async (t) => {
  const { session, read, messages } = await pausing(t, ['a', 'b'], {
    rules: [{ when: { user: 'never mind' }, reply: 'As you like.' }, ...callsThenRepeats('a', 'b')],
  });
  await read('go');
  await answer(session, 'toolu_2', 'done');
  const next = await read('never mind');
  assertEnd(next, { stopReason: 'end_turn' });
  assert.equal(textOf(next), 'As you like.');
  const last = messages(-1).at(-1);
  const [one, two] = resultsIn(last);
  assert.match(one[1], /superseded by a new message/);
  assert.deepEqual([one[0], one[2], ...two], ['toolu_1', true, 'toolu_2', 'done', false]);
  assert.equal(last.content.at(-1).text, 'never mind');
  assertError(await answer(session, 'toolu_1', 'late'), 'E_RESOURCE', NOT_PENDING);
});

test('a call stays open when the session is aborted while nothing runs', async (t) => {
  const { session, read } = await pausing(t, ['pick']);
  await read('go');
  await session.abort('enough');
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

test('an abort before the pause answers the calls as not started', async (t) => {
  const { session, messages } = await pausing(t, ['slow', 'ask'], {
    tools: [tool('slow', (_, { signal }) => aborted(signal)), clientTool('ask')],
  });
  const elements = [];
  for await (const element of session.send('go')) {
    elements.push(element);
    if (element.phase === 'tool_executing') session.abort();
  }
  assertEnd(elements, { stopReason: 'aborted' });
  assert.deepEqual(openIn(elements), []);
  assertError(await answer(session, 'toolu_2', 'x'), 'E_RESOURCE', NOT_PENDING);
  await session.prompt('go on');
  assert.match(resultsIn(messages(1).at(-1))[1][1], /not started/);
});

test('an answer that is aborted while the model speaks stays the answer', async (t) => {
  const { session, read, messages } = await pausing(t, ['pick'], {
    rules: [
      { when: { user: 'again' }, reply: 'Yes.' },
      { when: { hasToolResult: true }, reply: 'x', knobs: { hangHeaders: true } },
      { reply: toolCall('pick', {}, { id: 'toolu_1' }) },
    ],
  });
  await read('go');
  const elements = [];
  for await (const element of session.respondToolUse({ toolUseId: 'toolu_1', output: 'kept' })) {
    elements.push(element);
    if (element.phase === 'model_responding') session.abort();
  }
  assertEnd(elements, { stopReason: 'aborted' });
  assertError(await answer(session, 'toolu_1', 'x'), 'E_ALREADY_RESOLVED');
  await session.prompt('again');
  assert.deepEqual(resultsIn(messages(-1).at(-1)), [['toolu_1', 'kept', false]]);
});

test('an answer for an id that nobody waits for is a missing resource', async (t) => {
  const { session, read, emulator } = await pausing(t, ['pick']);
  assertError(await answer(session, 'toolu_1', 'x'), 'E_RESOURCE', NOT_PENDING);
  await read('go');
  assertError(await answer(session, 'toolu_2', 'x'), 'E_RESOURCE', NOT_PENDING);
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  assert.equal(emulator.requests.length, 2);
});

test('arguments of a wrong shape are refused at the first next, naming the field', async () => {
  const session = await createAgent(nowhere()).startSession({ userId: 'ann' });
  const cycle = { toolUseId: 't' };
  cycle.output = cycle;
  for (const [argument, word] of [
    [undefined, 'toolUseId'],
    ['toolu_1', 'toolUseId'],
    [[], 'toolUseId'],
    [{}, 'toolUseId'],
    [{ toolUseId: '' }, 'toolUseId'],
    [{ toolUseId: 5 }, 'toolUseId'],
    [{ toolUseId: 't', isError: 'no' }, 'isError'],
    [cycle, 'output'],
    [{ toolUseId: 't', output: 5n }, 'output'],
  ]) {
    const stream = session.respondToolUse(argument);
    const error = await errorOf(stream.next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'respondToolUse', word);
    assert.deepEqual(await stream.next(), { value: undefined, done: true });
  }
  for (const [input, word] of [
    [{ type: 'tool_result' }, 'toolUseId'],
    [{ type: 'tool_result', toolUseId: '' }, 'toolUseId'],
    [{ type: 'tool_result', toolUseId: 't', isError: 1 }, 'isError'],
  ]) {
    const error = await errorOf(session.send(input).next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'send', word);
  }
  const bad = session.respondToolUse({ toolUseId: 't' }, { signal: 5 });
  assertRefused(await errorOf(bad.next()), InvalidConfigError, 'E_INVALID_CONFIG', 'signal');
});

test("send({type: 'tool_result'}) answers too, and so does prompt", async (t) => {
  const { session, read } = await pausing(t, ['a', 'b']);
  await read('go');
  const one = await read({ type: 'tool_result', toolUseId: 'toolu_1', output: 'one' });
  assertEnd(one, { stopReason: 'awaiting_client_tool' });
  const two = { type: 'tool_result', toolUseId: 'toolu_2', output: 'no', isError: true };
  const result = await session.prompt(two);
  assert.deepEqual([result.stopReason, result.pending], ['end_turn', []]);
  await assert.rejects(session.prompt(two), { code: 'E_ALREADY_RESOLVED' });
});

test('prompt tells what is pending', async (t) => {
  const { session, agent } = await pausing(t, ['a', 'b']);
  const call = (at, toolName) => ({
    toolUseId: `toolu_${at}`,
    toolName,
    input: { city: toolName },
    kind: 'client_tool',
  });
  const { stopReason, pending, text } = await session.prompt('go');
  assert.deepEqual([stopReason, text], ['awaiting_client_tool', '']);
  assert.deepEqual(pending, [call(1, 'a'), call(2, 'b')]);
  const alone = await agent.prompt('go');
  assert.deepEqual(alone.pending, pending);
});

const OUTPUTS = [
  ['a text as it is', 'plain', 'plain'],
  ['an object as JSON', { a: [1] }, '{"a":[1]}'],
  ['nothing as a mark', undefined, '(no output)'],
  ['null as a mark', null, '(no output)'],
  ['an empty text as a mark', ' ', '(no output)'],
  ['a number', 0, '0'],
  ['false', false, 'false'],
];
for (const [name, output, text] of OUTPUTS) {
  test(`the model reads ${name}`, async (t) => {
    const { session, read, messages } = await pausing(t, ['pick']);
    await read('go');
    await answer(session, 'toolu_1', output);
    assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', text, false]]);
  });
}

test('an error is told as one', async (t) => {
  const { session, read, messages } = await pausing(t, ['pick']);
  await read('go');
  const elements = await answer(session, 'toolu_1', 'no such city', { isError: true });
  assert.deepEqual(endsOf(elements), [['toolu_1', 'failed', 'no such city']]);
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', 'no such city', true]]);
});

test('a huge answer keeps its ends', async (t) => {
  const { session, read, messages } = await pausing(t, ['pick']);
  await read('go');
  const output = `begin${'x'.repeat(20_000_000)}end`;
  const elements = await answer(session, 'toolu_1', output);
  assertEnd(elements, { stopReason: 'end_turn' });
  const [[, text]] = resultsIn(messages(1).at(-1));
  assert.ok(text.startsWith('begin') && text.endsWith('end'));
  assert.ok(text.length < 101_000, String(text.length));
});

test('an input that does not fit is answered at once and never pauses', async (t) => {
  const schemas = {
    json: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    zod: z.object({ city: z.string().refine((city) => city !== 'nowhere') }),
  };
  for (const [name, parameters] of Object.entries(schemas)) {
    const faulty = name === 'zod' ? { city: 'nowhere' } : {};
    const { read, session } = await pausing(t, ['pick'], {
      rules: [
        { when: { toolResult: 'InputValidationError' }, times: 1, reply: 'Sorry.' },
        { when: { hasToolResult: true }, reply: 'Fine.' },
        { times: 1, reply: toolCall('pick', faulty, { id: 'toolu_1' }) },
        { reply: toolCall('pick', { city: 'Paris' }, { id: 'toolu_2' }) },
      ],
      tools: [clientTool('pick', { parameters })],
    });
    const elements = await read('go');
    assertEnd(elements, { stopReason: 'end_turn' });
    assert.deepEqual(openIn(elements), []);
    assert.equal(textOf(elements), 'Sorry.');
    assert.deepEqual(openIn(await read('again')), [['toolu_2', 'pick', false]]);
    assertEnd(await answer(session, 'toolu_2', 'x'), { stopReason: 'end_turn' });
  }
});

test('one faulty call beside a good one: only the good one pauses', async (t) => {
  const { read, session, messages } = await pausing(t, ['pick'], {
    rules: [
      { when: { hasToolResult: true }, reply: 'Fine.' },
      {
        reply: toolCalls([
          { id: 'toolu_1', name: 'pick', input: { city: 5 } },
          { id: 'toolu_2', name: 'pick', input: { city: 'Rome' } },
        ]),
      },
    ],
  });
  const elements = await read('go');
  assert.deepEqual(openIn(elements), [['toolu_2', 'pick', false]]);
  assert.equal(endsOf(elements)[0][1], 'failed');
  await answer(session, 'toolu_2', 'x');
  assert.equal(resultsIn(messages(1).at(-1)).length, 2);
});

test('clientSide: true makes a client tool of one with execute', async (t) => {
  const execute = () => assert.fail('it must not run');
  const { read, session } = await pausing(t, ['pick'], {
    tools: [clientTool('pick', { execute, clientSide: true })],
  });
  assertEnd(await read('go'), { stopReason: 'awaiting_client_tool' });
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

test('a model that uses the older name of a tool means the tool', async (t) => {
  const { read, session } = await pausing(t, ['pick'], {
    rules: callsThenRepeats('mcp__custom__pick'),
    violations: [],
  });
  assert.deepEqual(openIn(await read('go')), [['toolu_1', 'pick', false]]);
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
});

test('hooks see the start at the pause and the end with the answer', async (t) => {
  const seen = [];
  const hooks = {
    onToolStart: ({ toolName, toolUseId, input }) =>
      void seen.push(['start', toolName, toolUseId, input]),
    onToolEnd: ({ toolName, output, isError }) => {
      seen.push(['end', toolName, output, isError]);
      return { updatedOutput: 'changed' };
    },
  };
  const { read, session, messages } = await pausing(t, ['pick'], { hooks });
  await read('go');
  assert.deepEqual(seen, [['start', 'pick', 'toolu_1', { city: 'pick' }]]);
  const elements = await answer(session, 'toolu_1', { a: 1 });
  assert.deepEqual(seen.slice(1), [['end', 'pick', { a: 1 }, false]]);
  assert.deepEqual(endsOf(elements), [['toolu_1', 'completed', 'changed']]);
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', 'changed', false]]);
});

test('a hook that fails at the pause fails the run; what is open stays open', async (t) => {
  let calls = 0;
  const hooks = {
    onToolStart: () => {
      calls += 1;
      if (calls === 2) throw new Error('no');
    },
  };
  const { read, session, messages } = await pausing(t, ['a', 'b', 'c'], { hooks });
  const elements = await read('go');
  assertError(elements, 'E_HOOK');
  assert.deepEqual(openIn(elements), [['toolu_1', 'a', false]]);
  assertEnd(await answer(session, 'toolu_1', 'x'), { stopReason: 'end_turn' });
  const [one, two, three] = resultsIn(messages(1).at(-1));
  assert.equal(one[1], 'x');
  for (const [, text, isError] of [two, three]) assert.ok(isError && /not started/.test(text));
});

test('a hook that fails at the answer fails the run; the answer is kept', async (t) => {
  const hooks = {
    onToolEnd: () => {
      throw new Error('no');
    },
  };
  const { read, session, messages } = await pausing(t, ['pick'], { hooks });
  await read('go');
  assertError(await answer(session, 'toolu_1', 'kept'), 'E_HOOK');
  assertError(await answer(session, 'toolu_1', 'other'), 'E_ALREADY_RESOLVED');
  await session.prompt('go on');
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', 'kept', false]]);
});

test('an answer that is aborted in a hook is finished by the next run', async (t) => {
  const begun = deferred();
  let times = 0;
  const hooks = {
    onToolEnd: ({ output }) => {
      times += 1;
      if (times > 1) return { updatedOutput: `${output}, seen twice` };
      begun.resolve();
      return new Promise(() => {});
    },
  };
  const { read, session, messages } = await pausing(t, ['pick'], { hooks });
  await read('go');
  const answered = answer(session, 'toolu_1', 'kept');
  await begun.promise;
  await session.abort();
  assertEnd(await answered, { stopReason: 'aborted' });
  await session.prompt('go on');
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', 'kept, seen twice', false]]);
});

test('an answer in the middle of the stream waits for its end', async (t) => {
  const { session } = await pausing(t, ['pick']);
  const seen = [];
  for await (const element of session.send('go')) {
    seen.push(element);
    if (element.sessionUpdate === 'tool_confirm') {
      assertEnd(await answer(session, element.toolCallId, 'x'), { stopReason: 'end_turn' });
    }
  }
  assertEnd(seen, { stopReason: 'awaiting_client_tool' });
});

test('an answer that waits for its turn can be stopped, and is refused by a closed session', async (t) => {
  const { session } = await pausing(t, ['slow'], {
    tools: [tool('slow', (_, { signal }) => aborted(signal))],
  });
  const running = session.send('go');
  for await (const { phase } of {
    [Symbol.asyncIterator]: () => ({ next: () => running.next() }),
  }) {
    if (phase === 'tool_executing') break;
  }
  const controller = new AbortController();
  const waiting = collect(
    session.respondToolUse({ toolUseId: 'x' }, { signal: controller.signal }),
  );
  controller.abort('later');
  const elements = await waiting;
  assert.deepEqual(
    elements.map(({ phase, stopReason, reason }) => [phase, stopReason, reason]),
    [['idle', 'aborted', 'later']],
  );
  const late = collect(session.respondToolUse({ toolUseId: 'x' }));
  const closed = session.close();
  assertRefused(await errorOf(late), SessionError, 'E_SESSION_CLOSED');
  await closed;
  await running.return();
});

test('nothing starts before the first next, and leaving stops the run', async (t) => {
  const { session, read } = await pausing(t, ['pick']);
  await read('go');
  const stream = session.respondToolUse({ toolUseId: 'toolu_1', output: 'x' });
  await stream.return();
  for await (const element of session.respondToolUse({ toolUseId: 'toolu_1', output: 'y' })) {
    if (element.phase === 'preparing') break;
  }
  await session.settled();
  const [record] = (await session.getHistory()).slice(-1);
  const call = record.parts.find(({ type }) => type === 'tool_call');
  // It waits still, or its answer was accepted: then the next run writes it down at the latest.
  assert.ok(['awaiting_approval', 'executing', 'done'].includes(call.status), call.status);
});

test('limits of an answer are those of its run', async (t) => {
  const { session, read } = await pausing(t, ['pick'], {
    rules: [{ reply: [toolCall('pick', {}, { id: 'toolu_1' }), toolCall('more', {})] }],
    tools: [clientTool('pick'), tool('more', () => 'more')],
  });
  await read('go');
  const stream = session.respondToolUse(
    { toolUseId: 'toolu_1', output: 'x' },
    { limits: { maxTurns: 1 } },
  );
  assertEnd(await collect(stream), { stopReason: 'max_turns' });
  const error = await errorOf(session.respondToolUse({ toolUseId: 't' }, { limits: 5 }).next());
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'limits');
});

test('the history shows what waits, and later what was answered', async (t) => {
  const { session, read } = await pausing(t, ['a', 'b']);
  await read('go');
  const parts = async () => (await session.getHistory()).at(-1).parts;
  const waiting = (at, toolName) => [
    {
      type: 'tool_call',
      toolUseId: `toolu_${at}`,
      toolName,
      input: { city: toolName },
      status: 'awaiting_approval',
    },
    {
      type: 'tool_approval_required',
      toolUseId: `toolu_${at}`,
      toolName,
      input: { city: toolName },
    },
  ];
  assert.deepEqual(await parts(), [...waiting(1, 'a'), ...waiting(2, 'b')]);
  await answer(session, 'toolu_1', 'one');
  const shown = await parts();
  assert.deepEqual(
    shown.map(({ type, status }) => [type, status]),
    [
      ['tool_call', 'done'],
      ['tool_result', 'done'],
      ['tool_call', 'awaiting_approval'],
      ['tool_approval_required', undefined],
    ],
  );
  await answer(session, 'toolu_2', 'two');
  assert.ok((await parts()).every(({ status }) => status === 'done' || status === undefined));
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text, toolCalls } from '../emulator/index.js';
import { endsOf, idleOf, readStream, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { gatewayFor, resultsIn, textIn, tool, unmarked } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };

test('FC-B1 a tool that was stopped is answered, not run again', async (t) => {
  const running = deferred();
  let runs = 0;
  const { session, send, messages, emulator } = await gatewayFor(t, {
    rules: [
      { when: { user: 'continue' }, reply: 'Going on.' },
      { reply: { text: 'Let me.', toolCalls: [{ id: 'toolu_1', name: 'pay' }] } },
    ],
    tools: [
      tool('pay', () => {
        runs += 1;
        running.resolve();
        return new Promise(() => {});
      }),
    ],
  });
  const reading = readStream(session.send('pay the bill'));
  await running.promise;
  await session.abort();
  const elements = await reading;
  assert.equal(idleOf(elements).stopReason, 'aborted');
  assert.deepEqual(
    endsOf(elements).map(([id, status]) => [id, status]),
    [['toolu_1', 'failed']],
  );

  assert.equal(textOf(await send('continue')), 'Going on.');
  assert.equal(runs, 1);
  assert.equal(emulator.requests.length, 2);
  const [prompt, answer, results] = messages(-1);
  assert.equal(textIn(prompt), 'pay the bill');
  assert.deepEqual(
    answer.content.map(({ type }) => type),
    ['text', 'tool_use'],
  );
  const [[id, told, isError]] = resultsIn(results);
  assert.deepEqual([id, isError], ['toolu_1', true]);
  assert.match(told, /interrupted.*may or may not/s);
  assert.equal(results.content.at(-1).text, 'continue');
});

test('FC-B3 one finished, one stopped and one open call have three results in order', async (t) => {
  const running = deferred();
  const runs = [];
  const { session, send, messages } = await gatewayFor(t, {
    rules: [
      { when: { user: 'continue' }, reply: 'Going on.' },
      {
        reply: toolCalls([
          { id: 'toolu_1', name: 'first' },
          { id: 'toolu_2', name: 'second' },
          { id: 'toolu_3', name: 'third' },
        ]),
      },
    ],
    tools: [
      tool('first', () => (runs.push(1), 'one')),
      tool('second', () => (runs.push(2), running.resolve(), new Promise(() => {}))),
      tool('third', () => (runs.push(3), 'three')),
    ],
  });
  const reading = readStream(session.send('go'));
  await running.promise;
  await session.abort();
  const elements = await reading;
  assert.deepEqual(
    endsOf(elements).map(([id, status]) => [id, status]),
    [
      ['toolu_1', 'completed'],
      ['toolu_2', 'failed'],
      ['toolu_3', 'failed'],
    ],
  );
  await send('continue');
  assert.deepEqual(runs, [1, 2]);
  const results = resultsIn(messages(-1)[2]);
  assert.deepEqual(
    results.map(([id, , isError]) => [id, isError]),
    [
      ['toolu_1', false],
      ['toolu_2', true],
      ['toolu_3', true],
    ],
  );
  assert.equal(results[0][1], 'one');
  assert.match(results[1][1], /interrupted/);
  assert.match(results[2][1], /not started/);
});

const EMPTY_ANSWERS = {
  'no content at all': { blocks: [] },
  'an empty text': { text: '' },
  'white space': { text: ' \n ' },
  'thinking alone': { thinking: 'Hm.', text: '' },
};

for (const [name, reply] of Object.entries(EMPTY_ANSWERS)) {
  test(`FC-B4 an answer of ${name} does not spoil the conversation`, async (t) => {
    const { send, emulator, messages } = await gatewayFor(t, {
      rules: [{ when: { user: 'second' }, reply: 'Second answer.' }, { reply }],
    });
    const elements = await send('first');
    assert.equal(idleOf(elements).stopReason, 'end_turn');
    // The model is asked for something to see, but not for ever.
    assert.ok(emulator.requests.length <= 2);
    assert.equal(textOf(await send('second')), 'Second answer.');
    assert.equal(textOf(await send('and the second again')), 'Second answer.');
    const roles = messages(-1).map(({ role }) => role);
    roles.forEach((role, at) => assert.notEqual(role, roles[at - 1]));
    assert.match(textIn(messages(-1)[0]), /^first/);
  });
}

test('FC-B4 an empty text beside a call is not sent back', async (t) => {
  const blocks = [
    { type: 'text', text: '' },
    { type: 'tool_use', id: 'toolu_1', name: 'now', input: {} },
    { type: 'text', text: '\n' },
  ];
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, { reply: { blocks } }],
    tools: [tool('now', () => 'noon')],
  });
  await send('time?');
  await send('and now?');
  for (const { role, content } of messages(-1).filter((message) => message.role === 'assistant')) {
    assert.equal(role, 'assistant');
    assert.ok(content.every((block) => block.type !== 'text' || block.text.trim() !== ''));
  }
});

for (const output of ['', ' ', '\n\t', undefined, null]) {
  test(`FC-B4 the tool output ${JSON.stringify(output)} becomes a short marker`, async (t) => {
    const { send, messages } = await gatewayFor(t, {
      rules: [THEN_DONE, { reply: toolCalls([{ id: 'toolu_1', name: 'quiet' }]) }],
      tools: [tool('quiet', () => output)],
    });
    const elements = await send('go');
    assert.equal(endsOf(elements)[0][1], 'completed');
    const [[, told, isError]] = resultsIn(messages(-1)[2]);
    assert.equal(told, '(no output)');
    assert.equal(isError, false);
    assert.equal(textOf(await send('and now?')), 'Done.');
  });
}

for (const input of ['', '   ', '\n', { type: 'message', content: '' }]) {
  test(`FC-B4 the prompt ${JSON.stringify(input)} is refused up front`, async (t) => {
    const { session, send, emulator } = await gatewayFor(t, { rules: 'hi' });
    const wanted = { name: 'InvalidConfigError', code: 'E_INVALID_CONFIG', message: /empty/ };
    await assert.rejects(session.send(input).next(), wanted);
    await assert.rejects(session.prompt(input), wanted);
    assert.equal(emulator.requests.length, 0);
    assert.equal(textOf(await send('hi')), 'hi');
  });
}

test('multi-turn: every turn sends the whole conversation, unchanged and in order', async (t) => {
  const { send, emulator } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'It is {{toolResult}}.' },
      { when: { user: 'time' }, reply: toolCalls([{ name: 'now', input: { zone: 'CST' } }]) },
      { reply: 'Answer {{turn}}.' },
    ],
    tools: [tool('now', () => 'noon')],
    systemPrompt: 'Be brief.',
  });
  for (const prompt of ['one', 'time', 'three', 'four', 'time']) await send(prompt);
  const bodies = emulator.requests.map(({ body }) => unmarked(body));
  bodies.slice(1).forEach((body, at) => {
    const before = bodies[at];
    assert.deepEqual(body.messages.slice(0, before.messages.length), before.messages);
    assert.deepEqual([body.system, body.tools], [before.system, before.tools]);
  });
  assert.equal(textIn(bodies.at(-1).messages[1]), 'Answer 0.');
});

test('multi-turn: sessions do not see each other', async (t) => {
  const { agent, emulator } = await gatewayFor(t, { rules: 'Hello {{user}}.' });
  const sessions = await Promise.all(
    ['ann', 'bob', 'eve'].map((userId) => agent.startSession({ userId })),
  );
  await Promise.all(sessions.map((session) => readStream(session.send(`from ${session.userId}`))));
  for (const session of sessions) {
    assert.equal(
      (await session.prompt(`again ${session.userId}`)).text,
      `Hello again ${session.userId}.`,
    );
    const { messages } = emulator.requests.at(-1).body;
    assert.equal(textIn(messages[0]), `from ${session.userId}`);
    assert.equal(messages.length, 3);
  }
});

test('multi-turn: a run that failed leaves a session that can go on', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [{ times: 1, reply: { status: 400 } }, { reply: 'fine' }],
  });
  assert.equal(idleOf(await send('first')).stopReason, 'error');
  assert.equal(textOf(await send('second')), 'fine');
  assert.equal(messages(-1).length, 1);
  assert.match(textIn(messages(-1)[0]), /second$/);
});

/** `AskUserQuestion`: the tool, the questions, and every form of answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCall } from '../emulator/index.js';
import { InvalidConfigError, createAgent } from '../index.js';
import { assertEnd, assertRefused, collect, errorOf, offline, tool } from './support/boundary.js';
import { NOT_PENDING, RESOLVED, assertError, clientTool } from './support/client-tools.js';
import { endsOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn } from './support/gateway.js';

const NAME = 'AskUserQuestion';
const option = (label) => ({ label, description: `it is ${label}` });
const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  options: [option('Red'), { ...option('Blue'), preview: '#00f' }],
  multiSelect: false,
};
const SIZES = {
  question: 'Which sizes?',
  header: 'Sizes',
  options: [option('S'), option('M'), option('L')],
  multiSelect: true,
};

/** An agent whose model asks, and its session after it has asked. */
async function asking(t, { input = { questions: [COLOUR, SIZES] }, ...config } = {}) {
  const gateway = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'You said {{toolResult}}' },
      { reply: toolCall(NAME, input, { id: 'toolu_1' }) },
    ],
    askUser: true,
    ...config,
  });
  const { session } = gateway;
  return {
    ...gateway,
    asked: await collect(session.send('go')),
    reply: (answer) => collect(session.respondAskUser({ toolUseId: 'toolu_1', answer })),
  };
}

test('questions are told, and answers go on with the turn', async (t) => {
  const { asked, reply, messages } = await asking(t);
  assertEnd(asked, { stopReason: 'awaiting_client_tool' });
  const [element] = asked.filter(({ sessionUpdate }) => sessionUpdate === 'ask_user');
  const turn = element.assistantMessageId;
  assert.deepEqual(element, {
    sessionUpdate: 'ask_user',
    toolCallId: 'toolu_1',
    assistantMessageId: turn,
    questions: [COLOUR, SIZES],
    _meta: { oak: { kind: 'question', assistantMessageId: turn } },
  });
  const answers = { 'Which colour?': 'Red', 'Which sizes?': ['S', 'L'] };
  const elements = await reply({ answers });
  assertEnd(elements, { stopReason: 'end_turn' });
  const told = { answers: { 'Which colour?': 'Red', 'Which sizes?': 'S, L' } };
  assert.deepEqual(endsOf(elements), [['toolu_1', 'completed', told]]);
  assert.deepEqual(resultsIn(messages(1).at(-1)), [['toolu_1', JSON.stringify(told), false]]);
  assertError(await reply('again'), 'E_ALREADY_RESOLVED', RESOLVED);
});

for (const [name, answer, answers] of [
  ['answers with null', { answers: { 'Which colour?': null } }, { 'Which colour?': '' }],
  ['the legacy form', { answer: 'Blue' }, { 'Which colour?': 'Blue' }],
  ['a bare text', 'Blue', { 'Which colour?': 'Blue' }],
  ['anything else', { picked: [1] }, { 'Which colour?': '{"picked":[1]}' }],
  ['a number', 5, { 'Which colour?': '5' }],
  ['nothing', undefined, { 'Which colour?': '' }],
]) {
  test(`an answer may be ${name}`, async (t) => {
    const { reply } = await asking(t);
    assert.deepEqual(endsOf(await reply(answer))[0][2], { answers });
  });
}

test('respondToolUse and send answer a question too', async (t) => {
  const { session } = await asking(t);
  const elements = await collect(
    session.respondToolUse({ toolUseId: 'toolu_1', output: { answer: 'Red' } }),
  );
  assert.deepEqual(endsOf(elements)[0][2], { answers: { 'Which colour?': 'Red' } });
  const other = await asking(t);
  const sent = { type: 'tool_result', toolUseId: 'toolu_1', output: 'Red' };
  assert.deepEqual(endsOf(await collect(other.session.send(sent)))[0][2], {
    answers: { 'Which colour?': 'Red' },
  });
});

test('an answer that is an error is passed on as it is', async (t) => {
  const { session } = await asking(t);
  const refused = { toolUseId: 'toolu_1', output: 'dismissed', isError: true };
  const elements = await collect(session.respondToolUse(refused));
  assert.deepEqual(endsOf(elements), [['toolu_1', 'failed', 'dismissed']]);
});

test('respondAskUser does not answer a client tool', async (t) => {
  const { session } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Done.' },
      { reply: toolCall('pick', {}, { id: 'toolu_1' }) },
    ],
    tools: [clientTool('pick')],
  });
  await collect(session.send('go'));
  const answer = { toolUseId: 'toolu_1', answer: 'x' };
  assertError(await collect(session.respondAskUser(answer)), 'E_RESOURCE', NOT_PENDING);
  for (const [bad, word] of [
    [undefined, 'toolUseId'],
    [{ answer: 'x' }, 'toolUseId'],
    [{ toolUseId: 't', answer: 5n }, 'answer'],
  ]) {
    const error = await errorOf(session.respondAskUser(bad).next());
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'respondAskUser', word);
  }
});

test('questions outside the limits are answered with the fault', async (t) => {
  const faulty = [
    { questions: [] },
    { questions: Array(5).fill(COLOUR) },
    { questions: [{ ...COLOUR, header: 'thirteen char' }] },
    { questions: [{ ...COLOUR, options: [option('Red')] }] },
    { questions: [{ ...COLOUR, options: Array(5).fill(option('Red')) }] },
    { questions: [{ ...COLOUR, multiSelect: 'yes' }] },
    { question: 'Which?' },
  ];
  for (const input of faulty) {
    const { asked } = await asking(t, { input });
    assertEnd(asked, { stopReason: 'end_turn' });
    assert.match(textOf(asked), /InputValidationError/);
  }
});

test('the tool is off unless it is asked for; the hint is one sentence', async (t) => {
  const told = async (config) => {
    const { session, emulator } = await gatewayFor(t, { rules: 'Hello.', ...config });
    await session.prompt('hi');
    const { tools = [], system } = emulator.requests[0].body;
    const text = typeof system === 'string' ? system : system?.map((block) => block.text).join('');
    return [tools.some(({ name }) => name === NAME), text ?? ''];
  };
  for (const config of [{}, { askUser: false }]) {
    assert.deepEqual(await told(config), [false, '']);
  }
  const [isOffered, hint] = await told({ askUser: true, systemPrompt: 'Be kind.' });
  assert.ok(isOffered);
  assert.match(hint, /^Be kind\.\n\n[^.]*AskUserQuestion[^.]*\.$/);
  for (const askUser of [{}, { hint: true }]) assert.match((await told({ askUser }))[1], /Ask/);
  assert.deepEqual(await told({ askUser: { hint: false } }), [true, '']);
});

test('wrong settings are refused', async () => {
  const refused = async (config, ...words) => {
    const error = await errorOf(() => createAgent(offline(config)));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', ...words);
  };
  for (const askUser of [5, 'yes', []]) await refused({ askUser }, 'config.askUser');
  await refused({ askUser: { hint: 'no' } }, 'config.askUser.hint');
  await refused({ askUser: true, tools: [tool(NAME)] }, NAME, 'config.tools[0]', 'config.askUser');
  createAgent(offline({ tools: [tool(NAME)] }));
});

test('the history shows a question that waits', async (t) => {
  const { session, reply } = await asking(t);
  const parts = async () => (await session.getHistory()).at(-1).parts;
  assert.deepEqual(
    (await parts()).map(({ type, toolName, status }) => [type, toolName, status]),
    [
      ['tool_call', NAME, 'awaiting_approval'],
      ['tool_approval_required', NAME, undefined],
    ],
  );
  assert.deepEqual((await session.prompt('skip')).pending, []);
  assertError(await reply('Red'), 'E_RESOURCE', NOT_PENDING);
});

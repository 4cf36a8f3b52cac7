import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCall, toolCalls } from '../emulator/index.js';
import { toMessagesRequest } from '../emulator/chat/to-messages.js';
import * as chat from '../emulator/fixtures/chat-client.js';
import * as make from '../emulator/fixtures/chat-requests.js';
import * as messages from '../emulator/fixtures/client.js';

const { emulatorFor } = messages;
const { assistant, call, calling, image, request, result, say, system, tool, user } = make;

/** One answer in a form that both protocols share. */
const fromMessages = ({ content }) => ({
  text: content.map(({ text }) => text ?? '').join(''),
  calls: content
    .filter(({ type }) => type === 'tool_use')
    .map(({ id, name, input }) => ({ id, name, input })),
});
const fromChat = ({ choices: [{ message }] }) => ({
  text: message.content ?? '',
  calls: (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
    id,
    name,
    input: JSON.parse(text),
  })),
});

/** A client of each protocol: it sends the conversation so far and adds the answer to it. */
const CLIENTS = {
  messages: {
    ask: async (emulator, body) => fromMessages(await messages.message(emulator, body)),
    fields: ({ system: text, tools = [] }) => ({
      ...(text && { system: text }),
      tools: tools.map((name) => ({ name, input_schema: { type: 'object' } })),
    }),
    begin: () => [],
    asking: (text) => [{ role: 'user', content: text }],
    answered: ({ text, calls }) => {
      const uses = calls.map((item) => ({ type: 'tool_use', ...item }));
      const content = text === '' ? uses : [{ type: 'text', text }, ...uses];
      return [{ role: 'assistant', content }];
    },
    results: (calls, text) => [
      {
        role: 'user',
        content: calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: text })),
      },
    ],
  },
  chat: {
    ask: async (emulator, body) => fromChat(await chat.completion(emulator, body)),
    fields: ({ tools }) => (tools ? { tools: tools.map((name) => tool(name)) } : {}),
    begin: ({ system: text }) => (text ? [system(text)] : []),
    asking: (text) => [user(text)],
    answered: ({ text, calls }) => [
      {
        ...assistant(text === '' ? null : text),
        ...(calls.length > 0 && {
          tool_calls: calls.map(({ id, name, input }) =>
            call(id, { name, arguments: JSON.stringify(input) }),
          ),
        }),
      },
    ],
    results: (calls, text) => calls.map(({ id }) => result(id, text)),
  },
};

/** Says every text, answers every call with `result`, and returns all answers. */
async function converse(emulator, client, { say: texts, result: output = '42', ...setup }) {
  const history = client.begin(setup);
  const answers = [];
  for (const text of texts) {
    history.push(...client.asking(text));
    for (let open = true; open;) {
      const body = { model: setup.model ?? 'm', ...client.fields(setup), messages: history };
      const answer = await client.ask(emulator, body);
      answers.push(answer);
      history.push(...client.answered(answer));
      open = answer.calls.length > 0;
      if (open) history.push(...client.results(answer.calls, output));
    }
  }
  return answers;
}

const both = toolCalls([
  { id: 'c0', name: 'lookup', input: { q: '{{user}}' } },
  { id: 'c1', name: 'dig', input: {} },
]);

const CONVERSATIONS = [
  {
    title: 'contained, matching and other texts',
    rules: [
      { when: { user: 'alpha' }, reply: 'contains' },
      { when: { user: { regex: '^be+ta$', flags: 'i' } }, reply: 'matches' },
      { reply: '{{user}}?' },
    ],
    say: ['say alpha', 'Beeta', 'gamma'],
    texts: ['contains', 'matches', 'gamma?'],
  },
  {
    title: 'a tool loop',
    rules: [
      { when: { tool: 'lookup' }, reply: '{{user}}: {{toolResult}} of {{tool}}' },
      { reply: toolCall('lookup', { q: '{{user}}' }, { id: 'c', text: 'Looking.' }) },
    ],
    say: ['where?'],
    texts: ['Looking.', 'where?: 42 of lookup'],
  },
  {
    title: 'parallel calls; any of their tools matches',
    rules: [{ when: { tool: /^di/ }, reply: '{{tool}}: {{toolResult}}' }, { reply: both }],
    say: ['q'],
    texts: ['', 'lookup: 42\n42'],
  },
  {
    title: 'results by their text, and the lack of results',
    rules: [
      { when: { toolResult: '41' }, reply: 'wrong' },
      { when: { hasToolResult: false }, reply: both },
      { when: { toolResult: /^4/ }, reply: 'right' },
    ],
    say: ['q'],
    texts: ['', 'right'],
  },
  {
    title: 'system text, model and offered tools',
    rules: [
      { when: { system: 'parrot' }, reply: 'no' },
      { when: { model: 'big' }, reply: 'no' },
      { when: { system: 'pirate', model: 'bigger', offersTool: 'dig' }, reply: 'arr' },
    ],
    system: 'You are a pirate',
    model: 'bigger',
    tools: ['lookup', 'dig'],
    say: ['q'],
    texts: ['arr'],
  },
  {
    title: 'turns count the answers',
    rules: [
      { when: { turn: 2 }, reply: 'third' },
      { times: 1, reply: 'first' },
      { reply: 'turn {{turn}}' },
    ],
    say: ['a', 'b', 'c', 'd'],
    texts: ['first', 'turn 1', 'third', 'turn 3'],
  },
  {
    title: 'functions get the same request and facts',
    rules: [
      {
        when: (body, { offered }) => body.tools.length === offered.length,
        reply: ({ system: text, messages: all, tools }, { user: said, turn }) =>
          [text, all.at(-1).role, tools[0].input_schema.type, said, turn].join(' '),
      },
    ],
    system: 'sys',
    tools: ['lookup'],
    say: ['a', 'b'],
    texts: ['sys user object a 0', 'sys user object b 1'],
  },
  {
    title: 'the built-in script',
    tools: ['get_weather', 'mcp__s__add'],
    say: ['my name is Ann', 'What is my name?', 'call add {"a": 1}', 'weather in Beijing'],
    texts: [
      'Nice to meet you, Ann!',
      'Your name is Ann.',
      'Calling add.',
      'The tool add answered: 42',
      'Let me check the weather in Beijing.',
      'Here is the weather in Beijing: 42',
    ],
  },
];

for (const { title, rules, texts, ...conversation } of CONVERSATIONS) {
  test(`both endpoints hold the same conversation: ${title}`, async (t) => {
    const emulator = await emulatorFor(t, { rules });
    const seen = {};
    for (const [name, client] of Object.entries(CLIENTS)) {
      emulator.reset();
      seen[name] = await converse(emulator, client, conversation);
      assert.deepEqual(emulator.violations, []);
    }
    assert.deepEqual(
      seen.chat.map(({ text }) => text),
      texts,
    );
    const withoutIds = (answers) =>
      answers.map(({ text, calls }) => ({ text, calls: calls.map(({ id: _, ...rest }) => rest) }));
    assert.deepEqual(withoutIds(seen.chat), withoutIds(seen.messages));
  });
}

test('uses of a rule are counted over both endpoints', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: ['first', 'second'] }] });
  assert.equal(chat.textOf(await chat.stream(emulator, 'x')), 'first');
  assert.equal(messages.textOf(await messages.stream(emulator, 'x')), 'second');
});

test('the user text stays the question while tools run; reminders are skipped', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: '{{user}}|{{toolResult}}|{{tool}}' }] });
  const parts = [say('<system-reminder>facts</system-reminder>'), say('the question')];
  const running = [user(parts), calling(call('a', { name: 'lookup' })), result('a', '{{user}} 42')];
  const ask = async (body) => chat.textOf(await chat.stream(emulator, body));
  assert.equal(await ask({ messages: running }), 'the question|{{user}} 42|lookup');
  const more = [...running, user('hurry')];
  assert.equal(await ask({ messages: more }), 'hurry|{{user}} 42|lookup');
});

test('a request in the form of the other protocol', () => {
  const png = 'data:image/png;base64,AAAA';
  const body = request(
    [
      system('be brief'),
      user([say('look'), image(png), image('https://x/y.png')]),
      { ...assistant('ok'), tool_calls: [call('a', { arguments: '{"x":1}' }), call('b')] },
      result('a', '1'),
      result('b', '2'),
      user('and now?'),
    ],
    { tools: [tool('f')], temperature: 0.5 },
  );
  assert.deepEqual(toMessagesRequest(body), {
    model: 'm',
    max_tokens: 10,
    temperature: 0.5,
    system: 'be brief',
    tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }],
    messages: [
      {
        role: 'user',
        content: [
          say('look'),
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
        ],
      },
      {
        role: 'assistant',
        content: [
          say('ok'),
          { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
          { type: 'tool_use', id: 'b', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'a', content: '1' },
          { type: 'tool_result', tool_use_id: 'b', content: '2' },
          say('and now?'),
        ],
      },
    ],
  });
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { readCity } from '../emulator/default-model/weather.js';
import { afterTools, emulatorFor, message } from '../emulator/fixtures/client.js';

const offer = (name, properties = { city: { type: 'string' } }) => [
  { name, input_schema: { type: 'object', properties } },
];
const say = async (emulator, text, tools) => {
  const messages = [{ role: 'user', content: text }];
  return (await message(emulator, { messages, tools })).content;
};

const CITIES = [
  ['What is the weather in Beijing?', 'Beijing'],
  ["what's the weather like in new york today?", 'new york'],
  ['Tell me the weather for San Francisco, please.', 'San Francisco'],
  ['Shanghai weather', 'Shanghai'],
  ['北京天气怎么样', '北京'],
  ['请问今天上海的天气如何？', '上海'],
  ['帮我查一下深圳市明天天气', '深圳'],
  ['天气', null],
  ['How is the weather?', null],
];
for (const [question, city] of CITIES) {
  test(`city in "${question}"`, () => assert.equal(readCity(question), city));
}

test('weather: calls the tool, then quotes its result', async (t) => {
  const emulator = await emulatorFor(t);
  const question = 'What is the weather in Beijing?';
  const content = await say(emulator, question, offer('get_weather'));
  assert.equal(content[0].text, 'Let me check the weather in Beijing.');
  assert.deepEqual(content[1].input, { city: 'Beijing' });
  const messages = afterTools(question, content, 'sunny, 25 C');
  const answer = await message(emulator, { messages, tools: offer('get_weather') });
  assert.equal(answer.content[0].text, 'Here is the weather in Beijing: sunny, 25 C');
  assert.equal(answer.stop_reason, 'end_turn');
});

test('weather: Chinese, an MCP tool and another field name', async (t) => {
  const emulator = await emulatorFor(t);
  const tools = offer('mcp__demo__get_weather', { unit: {}, location: {} });
  const content = await say(emulator, '北京天气怎么样', tools);
  assert.equal(content[0].text, '我来查一下北京的天气。');
  assert.equal(content[1].name, 'mcp__demo__get_weather');
  assert.deepEqual(content[1].input, { location: '北京' });
});

test('without the tool, weather is small talk', async (t) => {
  const emulator = await emulatorFor(t);
  const content = await say(emulator, 'What is the weather in Beijing?');
  assert.match(content[0].text, /You said: "What is the weather in Beijing\?"/);
});

test('call <tool> {json}', async (t) => {
  const emulator = await emulatorFor(t);
  const tools = [...offer('mcp__s__add'), ...offer('now')];
  const add = await say(emulator, 'please call add {"a": 1, "b": {"c": 2}}', tools);
  assert.equal(add[1].name, 'mcp__s__add');
  assert.deepEqual(add[1].input, { a: 1, b: { c: 2 } });
  const now = await say(emulator, '调用 now', tools);
  assert.deepEqual(now[1].input, {});
  assert.equal((await say(emulator, 'call mom', tools)).length, 1);
  const messages = afterTools('call add {}', add, '3');
  messages[2].content[0].is_error = true;
  const failed = await message(emulator, { messages, tools });
  assert.equal(failed.content[0].text, 'The tool add failed: 3');
});

test('thinks and counts', async (t) => {
  const emulator = await emulatorFor(t);
  const thought = await say(emulator, 'think about cats');
  assert.equal(thought[0].type, 'thinking');
  assert.equal(thought[1].text, 'I thought about it: cats');
  assert.equal((await say(emulator, 'Count to 5'))[0].text, '1, 2, 3, 4, 5');
  assert.equal((await say(emulator, '数到3'))[0].text, '1, 2, 3');
});

test('remembers a name told earlier', async (t) => {
  const emulator = await emulatorFor(t);
  const ask = async (told, question) => {
    const messages = [
      { role: 'user', content: told },
      { role: 'assistant', content: 'ok' },
      { role: 'user', content: question },
    ];
    return (await message(emulator, { messages })).content[0].text;
  };
  assert.equal(await ask('Hello, my name is Ann.', 'What is my name?'), 'Your name is Ann.');
  assert.equal(await ask('你好，我叫小明，很高兴', '我叫什么名字？'), '你叫小明。');
  assert.match(await ask('hi', "what's my name"), /have not told me/);
  assert.equal(
    await ask('My favourite dish is soup.', 'What is my favourite dish?'),
    'You like soup.',
  );
  assert.equal(await ask('我最喜欢吃番茄炒蛋。', '我最喜欢吃什么？'), '你喜欢吃番茄炒蛋。');
  assert.match(await ask('hi', 'what do I like to eat'), /have not told me/);
  const both = await ask('我叫小明，我最喜欢吃面', '我叫什么？喜欢吃什么？');
  assert.equal(both, '你叫小明。你喜欢吃面。');
  assert.equal((await say(emulator, '我叫小红'))[0].text, '很高兴认识你，小红！');
});

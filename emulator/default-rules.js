import { say } from './default-model/language.js';
import { asksLike, readLike, rememberedLike } from './default-model/likes.js';
import { asksName, readName, rememberedName } from './default-model/names.js';
import { findTool, plainName, readCallOrder } from './default-model/tools.js';
import { asksWeather, readCity, weatherInput } from './default-model/weather.js';
import { userTexts } from './model/facts.js';
import { text, thinking, toolCall } from './model/replies.js';

const COUNT = /(?:\bcount\s+(?:up\s+)?to|数到|数数到)\s*(\d{1,5})/iu;
const THINK = /^\s*(?:think\b|思考|想一想|想想)\s*(?:about|about:|一下)?[\s:：，,]*(.*)/isu;

/**
 * The script that runs when none is given: a friendly model for offline work. README.md lists what
 * it understands.
 */
export const defaultRules = [
  {
    name: 'tool answered',
    when: { hasToolResult: true },
    reply: (_request, facts) => onResult(facts),
  },
  {
    name: 'call <tool> {json}',
    when: (_request, { user, offered }) => {
      const order = readCallOrder(user);
      return order !== null && findTool(offered, order.name) !== undefined;
    },
    reply: (_request, { user, offered }) => {
      const { name, input } = readCallOrder(user);
      return toolCall(findTool(offered, name), input, {
        text: say(user, `Calling ${name}.`, `正在调用 ${name}。`),
      });
    },
  },
  {
    name: 'weather',
    when: (_request, { user, offered }) =>
      asksWeather(user) && findTool(offered, 'get_weather') !== undefined,
    reply: askWeather,
  },
  {
    name: 'what is my name, what do I like to eat',
    when: (_request, { user }) => asksName(user) || asksLike(user),
    reply: (request, { user }) => {
      const texts = userTexts(request.messages);
      const answers = [];
      if (asksName(user)) answers.push(sayName(user, rememberedName(texts)));
      if (asksLike(user)) answers.push(sayLike(user, rememberedLike(texts)));
      return answers.join(say(user, ' ', ''));
    },
  },
  {
    name: 'my name is X, my favourite dish is Y',
    when: (_request, { user }) => readName(user) !== null || readLike(user) !== null,
    reply: (_request, { user }) => {
      const [name, dish] = [readName(user), readLike(user)];
      const answers = [];
      if (name) answers.push(say(user, `Nice to meet you, ${name}!`, `很高兴认识你，${name}！`));
      if (dish) answers.push(say(user, `I will remember: ${dish}.`, `我记住了：${dish}。`));
      return answers.join(say(user, ' ', ''));
    },
  },
  {
    name: 'count to N',
    when: { user: COUNT },
    reply: (_request, { user }) => {
      const last = Math.min(10_000, Number(COUNT.exec(user)[1]));
      const numbers = Array.from({ length: last }, (_, index) => `${index + 1}`);
      return text(numbers.map((number, index) => (index === 0 ? number : `, ${number}`)));
    },
  },
  {
    name: 'think',
    when: { user: THINK },
    reply: (_request, { user }) => {
      const topic = THINK.exec(user)[1].trim() || say(user, 'this', '这件事');
      return thinking(
        say(user, `The user wants me to think about: ${topic}`, `用户想让我思考：${topic}`),
        say(user, `I thought about it: ${topic}`, `我想过了：${topic}`),
      );
    },
  },
  {
    name: 'echo',
    reply: (_request, { user }) =>
      say(
        user,
        `This is the local emulator speaking. You said: "${user}"`,
        `这里是本地模拟器。你说的是：“${user}”`,
      ),
  },
];

function sayName(user, name) {
  if (name === null) {
    return say(user, 'You have not told me your name yet.', '你还没有告诉我你的名字。');
  }
  return say(user, `Your name is ${name}.`, `你叫${name}。`);
}

function sayLike(user, dish) {
  if (dish === null) {
    return say(user, 'You have not told me what you like to eat.', '你还没有告诉我你喜欢吃什么。');
  }
  return say(user, `You like ${dish}.`, `你喜欢吃${dish}。`);
}

function askWeather(request, { user, offered }) {
  const city = readCity(user);
  if (city === null) return say(user, 'For which city?', '请问是哪个城市？');
  const name = findTool(offered, 'get_weather');
  const tool = request.tools.find((candidate) => candidate.name === name);
  return toolCall(name, weatherInput(tool, city), {
    text: say(user, `Let me check the weather in ${city}.`, `我来查一下${city}的天气。`),
  });
}

function onResult({ user, tool, tools, toolResult, toolFailed }) {
  const name = tools.map(plainName).join(', ');
  if (toolFailed) {
    return say(
      user,
      `The tool ${name} failed: ${toolResult}`,
      `工具 ${name} 出错了：${toolResult}`,
    );
  }
  const city = plainName(tool) === 'get_weather' ? readCity(user) : null;
  if (city !== null) {
    return say(
      user,
      `Here is the weather in ${city}: ${toolResult}`,
      `${city}的天气：${toolResult}`,
    );
  }
  return say(
    user,
    `The tool ${name} answered: ${toolResult}`,
    `工具 ${name} 的结果：${toolResult}`,
  );
}

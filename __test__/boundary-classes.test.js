/** Tools, hooks and other members as instances of classes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createContext, runInContext } from 'node:vm';

import { toolCall } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { configFor, offline, setUp } from './support/boundary.js';

const RULES = [
  { when: { hasToolResult: true }, reply: '{{toolResult}}' },
  { reply: toolCall('counter', { by: 2 }) },
];

class Counter {
  #total = 40;
  get name() {
    return 'counter';
  }
  get description() {
    return 'Counts.';
  }
  get parameters() {
    return { type: 'object', properties: { by: { type: 'number' } } };
  }
  async execute({ by }) {
    this.#total += by;
    return this.#total;
  }
}

test('a tool may be an instance with everything on its class and in private fields', async (t) => {
  const { session, emulator } = await setUp(t, { rules: RULES, tools: [new Counter()] });
  assert.equal((await session.prompt('hi')).text, '42');
  assert.equal((await session.prompt('again')).text, '44');
  assert.equal(emulator.requests[0].body.tools[0].description, 'Counts.');
});

test('a tool may be an instance of a subclass', async (t) => {
  class Loud extends Counter {
    async execute(input) {
      return `${await super.execute(input)}!`;
    }
  }
  const { session } = await setUp(t, { rules: RULES, tools: [new Loud()] });
  assert.equal((await session.prompt('hi')).text, '42!');
});

test('a tool may keep any state of its own in public fields', async (t) => {
  class Stateful extends Counter {
    cache = {};
    client = new Map();
    limit = 10n;
    key = Symbol('x');
    huge = 'x'.repeat(20_000_000);
    constructor() {
      super();
      this.cache.self = this.cache;
    }
    get broken() {
      throw new Error('not for you');
    }
  }
  const stateful = new Stateful();
  Object.defineProperty(stateful, 'lazy', {
    enumerable: true,
    get() {
      throw new Error('not connected yet');
    },
  });
  const { session } = await setUp(t, { rules: RULES, tools: [stateful] });
  assert.equal((await session.prompt('hi')).text, '42');
});

class Audit {
  #lines = [];
  onSessionStart() {
    this.#lines.push('start');
  }
  async onUserMessage({ prompt }) {
    this.#lines.push(`user ${prompt}`);
    return { modifiedPrompt: `${prompt}!` };
  }
  onToolStart({ toolName, signal }) {
    this.#lines.push(`tool ${toolName} ${signal instanceof AbortSignal}`);
  }
  onToolEnd({ output, isError }) {
    this.#lines.push(`result ${output} ${isError}`);
    return { updatedOutput: 'changed' };
  }
  onAgentMessage({ text }) {
    this.#lines.push(`agent ${text}`);
  }
  onSessionEnd() {
    this.#lines.push('end');
  }
  get lines() {
    return this.#lines;
  }
}

const LINES = ['start', 'user hi', 'tool counter true', 'result 42 false', 'agent changed', 'end'];

test('hooks may be an instance with methods on its class and private fields', async (t) => {
  const hooks = new Audit();
  const { session, emulator } = await setUp(t, { rules: RULES, tools: [new Counter()], hooks });
  await session.prompt('hi');
  await session.close();
  assert.deepEqual(hooks.lines, LINES);
  assert.equal(emulator.requests[0].body.messages[0].content.at(-1).text ?? 'hi!', 'hi!');
});

test('hooks may keep state of their own in public fields', async (t) => {
  class Stateful extends Audit {
    seen = new Set();
    options = { verbose: true };
    helper() {
      return this.seen;
    }
  }
  const hooks = new Stateful();
  const { session } = await setUp(t, { rules: RULES, tools: [new Counter()], hooks });
  await session.prompt('hi');
  await session.close();
  assert.deepEqual(hooks.lines, LINES);
});

test('methods are taken when the agent is made', async (t) => {
  const counter = new Counter();
  const { session } = await setUp(t, { rules: RULES, tools: [counter] });
  counter.execute = () => 'replaced later';
  assert.equal((await session.prompt('hi')).text, '42');
});

test('objects without a prototype and of another realm are as good', async (t) => {
  const { emulator } = await setUp(t, { rules: RULES });
  const { model } = configFor(emulator);
  const bare = Object.assign(Object.create(null), {
    envId: 'e',
    model: Object.assign(Object.create(null), model),
    limits: Object.assign(Object.create(null), { maxTurns: 5 }),
    tools: [
      Object.assign(Object.create(null), {
        name: 'counter',
        description: 'd',
        parameters: Object.assign(Object.create(null), { type: 'object' }),
        execute: () => 'bare',
      }),
    ],
  });
  assert.equal((await createAgent(bare).prompt('hi')).text, 'bare');
  const make = `({
    envId: 'e',
    model: { ...model },
    tools: [{
      name: 'counter', description: 'd', parameters: { type: 'object' }, execute: async () => 'far',
    }],
  })`;
  const far = runInContext(make, createContext({ model }));
  assert.equal((await createAgent(far).prompt('hi')).text, 'far');
});

test('a frozen configuration works and none is changed', async (t) => {
  const freeze = (value) => {
    if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
      Object.freeze(value);
      Object.values(value).forEach(freeze);
    }
    return value;
  };
  const { emulator } = await setUp(t, { rules: RULES });
  const config = {
    ...configFor(emulator),
    systemPrompt: 'x',
    limits: { maxTurns: 5 },
    metadata: { a: [1, { b: 2 }] },
    tools: [
      { name: 'counter', description: 'd', parameters: { properties: {} }, execute: () => 'x' },
    ],
    hooks: { onToolStart() {} },
  };
  const before = structuredClone({ ...config, tools: [], hooks: {} });
  const { parameters } = config.tools[0];
  const agent = createAgent(freeze(config));
  assert.equal((await agent.prompt('hi')).text, 'x');
  assert.deepEqual({ ...config, tools: [], hooks: {} }, before);
  assert.deepEqual(parameters, { properties: {} });
  assert.deepEqual(Object.keys(config.tools[0]), ['name', 'description', 'parameters', 'execute']);
});

test('changes after createAgent have no effect', async (t) => {
  const { emulator } = await setUp(t);
  const config = { ...configFor(emulator), systemPrompt: 'before', name: 'before', tools: [] };
  const agent = createAgent(config);
  Object.assign(config, { systemPrompt: 'after', name: 'after' });
  config.model.id = 'other';
  config.tools.push({});
  await agent.prompt('hi');
  assert.equal(agent.name, 'before');
  const [{ body }] = emulator.requests;
  assert.match(JSON.stringify(body.system), /before/);
  assert.equal(body.model, 'glm');
});

test('two agents may share one configuration and one tool object', async (t) => {
  const tools = [new Counter()];
  const { emulator } = await setUp(t, { rules: RULES });
  const config = { ...configFor(emulator), tools };
  const texts = [];
  for (const agent of [createAgent(config), createAgent(config)]) {
    texts.push((await agent.prompt('hi')).text);
  }
  assert.deepEqual(texts, ['42', '44']);
  createAgent(offline({ tools }));
});

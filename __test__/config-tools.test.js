/** `config.tools`: names, schemas, and what tools get and give. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';

import { toolCall } from '../emulator/index.js';
import { InvalidConfigError, createAgent } from '../index.js';
import { assertRefused, errorOf, offline, setUp, tool } from './support/boundary.js';

const invalid = async (tools, ...words) =>
  assertRefused(
    await errorOf(() => createAgent(offline({ tools }))),
    InvalidConfigError,
    'E_INVALID_CONFIG',
    ...words,
  );

test('FC-F7: names that the gateway rejects are refused', async () => {
  const names = [
    'a.b',
    'a b',
    'Créer',
    'x'.repeat(65),
    'a/b',
    'a\0',
    'a\n',
    'ä',
    '工具',
    '../x',
    '*',
  ];
  for (const name of names) await invalid([tool(name)], 'config.tools[0].name', /letters, digits/);
  for (const name of ['', ' ', undefined, null, 5, {}, Symbol('x')]) {
    await invalid([tool(name)], 'config.tools[0].name');
  }
  for (const name of ['a', 'x'.repeat(64), 'A-b_9', '0'])
    createAgent(offline({ tools: [tool(name)] }));
});

test('names of MCP tools are reserved', async () => {
  await invalid([tool('mcp__weather__get')], 'mcp__', 'MCP');
  createAgent(offline({ tools: [tool('mcp_weather')] }));
});

test('two tools with one name are refused, naming both', async () => {
  await invalid([tool('a'), tool('b'), tool('a')], 'config.tools[0]', 'config.tools[2]', '"a"');
  createAgent(offline({ tools: [tool('a'), tool('A')] }));
});

test('too many tools are refused', async () => {
  const tools = Array.from({ length: 1001 }, (_, at) => tool(`t${at}`));
  await invalid(tools, 'config.tools', '1001');
});

for (const [name, bad] of [
  ['description', [5, {}, true]],
  ['needsApproval', ['yes', 1, {}]],
  ['clientSide', ['yes', 1, {}]],
  ['idempotent', ['yes', 1, {}]],
  ['readOnly', ['yes', 1, {}]],
  ['timeoutMs', ['5', -1, 1.5, NaN, {}]],
]) {
  test(`tools[].${name} of a wrong type is refused and the tool named`, async () => {
    for (const value of bad)
      await invalid([tool('my_tool', () => 1, { [name]: value })], name, 'my_tool');
    createAgent(offline({ tools: [tool('my_tool', () => 1, { [name]: undefined })] }));
  });
}

test('tools[].needsApproval true is not built', async () => {
  const tools = [tool('a', () => 1, { needsApproval: true })];
  const error = await errorOf(() => createAgent(offline({ tools })));
  assert.equal(error.code, 'E_NOT_IMPLEMENTED');
  assert.match(error.message, /needsApproval/);
});

test('FC-F8: parameters that are no JSON Schema of an object are refused', async () => {
  const schemas = [
    undefined,
    null,
    5,
    'string',
    true,
    [],
    () => {},
    { city: { type: 'string' } },
    { type: 'object', city: { type: 'string' } },
    { type: 'string' },
    { type: 5 },
    { type: 'object', properties: 5 },
    { type: 'object', required: 'a' },
    { type: 'object', properties: { a: { type: 'strin' } } },
    { type: 'object', properties: { a: { pattern: '(' } } },
    { type: 'object', properties: { a: { $ref: '#/$defs/nowhere' } } },
    { type: 'object', properties: { a: { $ref: 'http://127.0.0.1:1/x.json' } } },
    { type: 'object', properties: { a: { default: () => 5 } } },
    new Map(),
    new (class Schema {
      type = 'object';
    })(),
  ];
  for (const parameters of schemas) {
    await invalid([tool('my_tool', () => 1, { parameters })], 'parameters', 'my_tool');
  }
});

test('FC-F8: a zod schema without an input object, or that JSON cannot say, is refused', async () => {
  const schemas = [
    z.string(),
    z.array(z.string()),
    z.object({ when: z.date() }),
    z.object({ big: z.bigint() }),
    z.object({ file: z.symbol() }),
  ];
  for (const parameters of schemas) {
    await invalid([tool('my_tool', () => 1, { parameters })], 'config.tools[0].parameters');
  }
});

test('FC-F8: schemas that nobody can convert are refused, never emptied', async () => {
  const validate = (value) => ({ value });
  const foreign = [{ '~standard': { version: 1, vendor: 'mine', validate } }, { parse: validate }];
  for (const parameters of foreign) {
    await invalid([tool('my_tool', () => 1, { parameters })], 'config.tools[0].parameters');
  }
});

const ask = (name, input) => [
  { when: { hasToolResult: true }, reply: '{{toolResult}}' },
  { reply: toolCall(name, input) },
];

test('FC-F8: the model sees a zod schema as JSON Schema, defaults and words included', async (t) => {
  const parameters = z.object({
    city: z.string().describe('A city'),
    days: z.number().int().min(1).default(3),
    unit: z.enum(['c', 'f']).optional(),
    place: z.object({ lat: z.number(), lon: z.number().optional() }).optional(),
  });
  const tools = [tool('weather', () => 'x', { parameters })];
  const { emulator, session } = await setUp(t, { tools });
  await session.prompt('hi');
  const [{ input_schema: schema }] = emulator.requests[0].body.tools;
  assert.equal(schema.type, 'object');
  assert.deepEqual(Object.keys(schema.properties), ['city', 'days', 'unit', 'place']);
  assert.deepEqual(schema.required, ['city']);
  assert.equal(schema.properties.city.description, 'A city');
  assert.equal(schema.properties.days.default, 3);
  assert.deepEqual(schema.properties.unit.enum, ['c', 'f']);
  assert.deepEqual(schema.properties.place.required, ['lat']);
  assert.equal(
    Object.keys(schema).some((key) => key.startsWith('~')),
    false,
  );
});

test('FC-F8: execute gets the parsed value: defaults, coercion, transforms', async (t) => {
  const parameters = z.object({
    days: z.coerce.number().default(3),
    unit: z.enum(['c', 'f']).default('c'),
    tags: z.string().transform((text) => new Set(text.split(','))),
    deep: z.object({ on: z.boolean().default(true) }).prefault({}),
    later: z.string().transform(async (text) => text.toUpperCase()),
  });
  const seen = [];
  const tools = [tool('weather', (input) => void seen.push(input), { parameters })];
  const input = { days: '5', tags: 'a,b', later: 'x', extra: 1 };
  const { session } = await setUp(t, { rules: ask('weather', input), tools });
  await session.prompt('hi');
  assert.deepEqual(seen, [
    { days: 5, unit: 'c', tags: new Set(['a', 'b']), deep: { on: true }, later: 'X' },
  ]);
});

for (const [kind, parameters] of [
  ['zod', z.object({ days: z.number() })],
  ['JSON', { type: 'object', properties: { days: { type: 'number' } }, required: ['days'] }],
]) {
  test(`an input that does not fit the ${kind} schema is told to the model`, async (t) => {
    let calls = 0;
    const tools = [tool('weather', () => (calls += 1), { parameters })];
    const { emulator, session } = await setUp(t, { rules: ask('weather', { days: 'x' }), tools });
    await session.prompt('hi');
    assert.equal(calls, 0);
    const [result] = emulator.requests[1].body.messages.at(-1).content;
    assert.equal(result.is_error, true);
    assert.match(JSON.stringify(result.content), /InputValidationError.*weather.*days/);
  });
}

test('a refinement of zod that throws fails the call, not the run', async (t) => {
  const broken = z.object({ a: z.string() }).refine(() => {
    throw new Error('refused to think');
  });
  const tools = [tool('x', () => 1, { parameters: broken })];
  const { emulator, session } = await setUp(t, { rules: ask('x', { a: 'b' }), tools });
  const { stopReason } = await session.prompt('hi');
  assert.equal(stopReason, 'end_turn');
  assert.equal(emulator.requests[1].body.messages.at(-1).content[0].is_error, true);
});

test('the context has the ids of the call and a signal', async (t) => {
  let seen;
  const tools = [tool('x', (input, context) => void (seen = context))];
  const { session } = await setUp(t, { rules: ask('x', {}), tools });
  await session.prompt('hi');
  assert.equal(seen.conversationId, session.id);
  assert.equal(seen.userId, 'ann');
  assert.equal(seen.envId, 'test-env');
  assert.match(seen.toolUseId, /^toolu_/);
  assert.equal(typeof seen.idempotencyKey, 'string');
  assert.ok(seen.signal instanceof AbortSignal);
  assert.equal(seen.signal.aborted, false);
});

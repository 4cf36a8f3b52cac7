/** FC-F8: one tool, written with every library, is the same for the model. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import * as z4 from 'zod';
import * as mini from 'zod/mini';
import { z as z3own } from 'zod/v3';

import { oracle } from '../scripts/oracle.js';
import { setUp, tool } from './support/boundary.js';

const require = createRequire(join(oracle('schemas'), 'package.json'));
const v = require('valibot');
const { toStandardJsonSchema } = require('@valibot/to-json-schema');
const { type } = require('arktype');

const WANTED = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 1, description: 'A city' },
    days: { type: 'number', minimum: 1, default: 3 },
    unit: { type: 'string', enum: ['c', 'f'] },
    place: {
      type: 'object',
      properties: { lat: { type: 'number' }, lon: { type: 'number' } },
      required: ['lat'],
      description: 'Where',
    },
    tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
  },
  required: ['city', 'tags'],
};

const shape = (z) => ({
  city: z.string().min(1).describe('A city'),
  days: z.number().min(1).default(3),
  unit: z.enum(['c', 'f']).optional(),
  place: z.object({ lat: z.number(), lon: z.number().optional() }).describe('Where').optional(),
  tags: z.array(z.string()).max(3),
});
const miniShape = {
  city: mini.string().check(mini.minLength(1), mini.describe('A city')),
  days: mini._default(mini.number().check(mini.minimum(1)), 3),
  unit: mini.optional(mini.enum(['c', 'f'])),
  place: mini.optional(
    mini
      .object({ lat: mini.number(), lon: mini.optional(mini.number()) })
      .check(mini.describe('Where')),
  ),
  tags: mini.array(mini.string()).check(mini.maxLength(3)),
};
const valibot = v.object({
  city: v.pipe(v.string(), v.minLength(1), v.description('A city')),
  days: v.optional(v.pipe(v.number(), v.minValue(1)), 3),
  unit: v.optional(v.picklist(['c', 'f'])),
  place: v.optional(
    v.pipe(v.object({ lat: v.number(), lon: v.optional(v.number()) }), v.description('Where')),
  ),
  tags: v.pipe(v.array(v.string()), v.maxLength(3)),
});
const arktype = type({
  city: type('string > 0').describe('A city'),
  'days?': 'number >= 1',
  'unit?': "'c' | 'f'",
  'place?': type({ lat: 'number', 'lon?': 'number' }).describe('Where'),
  tags: 'string[] <= 3',
});

/** The same object with nothing of a library but what the standard has. */
function standard() {
  const { validate } = z4.object(shape(z4))['~standard'];
  const input = ({ target }) => {
    if (target !== 'draft-2020-12') throw new Error(`no ${target}`);
    return { $schema: 'https://json-schema.org/draft/2020-12/schema', ...WANTED };
  };
  const jsonSchema = { input, output: () => assert.fail('the model writes the input') };
  return { '~standard': { version: 1, vendor: 'mine', validate, jsonSchema } };
}

/** What libraries say in other words, or cannot say. */
const same = (schema) => schema;
const SOURCES = {
  'zod 4': [z4.object(shape(z4)), same],
  'zod 4, raw shape': [shape(z4), same],
  'zod 4.1': [require('zod-4-1').z.object(shape(require('zod-4-1').z)), same],
  'zod 4.0': [require('zod-4-0').z.object(shape(require('zod-4-0').z)), same],
  'zod 4.0, raw shape': [shape(require('zod-4-0').z), same],
  'zod/mini': [mini.object(miniShape), same],
  'zod/mini, raw shape': [miniShape, same],
  'zod/v3': [z3own.object(shape(z3own)), same],
  'zod/v3, raw shape': [shape(z3own), same],
  'zod 3.23': [require('zod-3').z.object(shape(require('zod-3').z)), same],
  'zod 3.23, raw shape': [shape(require('zod-3').z), same],
  'zod 3.25': [require('zod-3-last').z.object(shape(require('zod-3-last').z)), same],
  'zod 4 as JSON Schema': [z4.toJSONSchema(z4.object(shape(z4)), { io: 'input' }), same],
  'a JSON Schema': [WANTED, same],
  'a Standard JSON Schema': [standard(), same],
  valibot: [
    toStandardJsonSchema(valibot),
    (schema) => {
      schema.properties.unit.type ??= 'string';
      return schema;
    },
  ],
  arktype: [
    arktype,
    (schema) => {
      schema.properties.unit.type ??= 'string';
      schema.properties.days.default ??= 3;
      return schema;
    },
  ],
};

for (const [name, [parameters, level]] of Object.entries(SOURCES)) {
  test(`FC-F8: a tool of ${name}`, async (t) => {
    const { emulator, session } = await setUp(t, {
      tools: [tool('weather', () => 'x', { parameters })],
    });
    await session.prompt('hi');
    const { $schema, ...schema } = emulator.requests[0].body.tools[0].input_schema;
    assert.deepEqual(level(schema), WANTED);
    assert.equal(typeof ($schema ?? ''), 'string');
  });
}

/** All of zod 3 that JSON Schema can say, written by zod 3 and by zod 4. */
const everything = (z) => ({
  any: z.unknown().describe('anything'),
  bool: z.boolean(),
  nothing: z.null(),
  one: z.literal('x'),
  enums: z.nativeEnum({ A: 'a', B: 'b' }),
  numbers: z.nativeEnum({ 0: 'Zero', Zero: 0 }),
  either: z.union([z.string(), z.object({ a: z.number() })]),
  kind: z.discriminatedUnion('k', [
    z.object({ k: z.literal('a'), a: z.string() }),
    z.object({ k: z.literal('b') }),
  ]),
  pair: z.tuple([z.string(), z.number()]),
  rest: z.tuple([z.string()]).rest(z.boolean()),
  map: z.record(z.string(), z.number()),
  strict: z.object({ a: z.string() }).strict(),
  open: z.object({ a: z.string() }).passthrough(),
  more: z.object({ a: z.string() }).catchall(z.number()),
  both: z.object({ a: z.string() }).and(z.object({ b: z.string().optional() })),
  brand: z.string().brand('B'),
  steps: z.string().transform(Number).pipe(z.number()),
  before: z.preprocess(String, z.string()),
  refined: z.object({ a: z.string() }).refine(() => true),
  caught: z.number().catch(1).optional(),
  price: z.number().gt(0).lt(10).multipleOf(0.5),
  code: z
    .string()
    .length(4)
    .regex(/^[a-z]+$/),
  list: z.array(z.string()).length(2),
  some: z.array(z.string()).nonempty(),
  lower: z.string().trim().toLowerCase(),
});

test('FC-F8: zod 3 gives what zod 4 gives', async (t) => {
  const [three, four] = await Promise.all(
    [require('zod-3').z, z4].map(async (z) => {
      const tools = [tool('t', () => 1, { parameters: z.object(everything(z)) })];
      const { emulator, session } = await setUp(t, { tools });
      await session.prompt('hi');
      return emulator.requests[0].body.tools[0].input_schema;
    }),
  );
  // Only zod 4 has a default for what is caught, and only for zod 3 may the unknown be missing.
  delete four.properties.caught.default;
  four.required.splice(four.required.indexOf('any'), 1);
  assert.deepEqual(three, four);
});

test('FC-F8: the formats and patterns of zod 3', async (t) => {
  const { z } = require('zod-3');
  const parameters = {
    mail: z.string().email().max(50),
    when: z.string().datetime(),
    day: z.string().date(),
    local: z.string().datetime({ local: true }),
    link: z.string().url(),
    ip: z.string().ip({ version: 'v4' }),
    ips: z.string().ip(),
    part: z.string().includes('a.b').startsWith('x').endsWith('?'),
    loose: z.string().regex(/abc/i),
    maybe: z.string().nullable(),
    int: z.number().int().finite().min(-Infinity),
  };
  const { emulator, session } = await setUp(t, { tools: [tool('t', () => 1, { parameters })] });
  await session.prompt('hi');
  assert.deepEqual(emulator.requests[0].body.tools[0].input_schema.properties, {
    mail: { type: 'string', format: 'email', maxLength: 50 },
    when: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    local: { type: 'string' },
    link: { type: 'string', format: 'uri' },
    ip: { type: 'string', format: 'ipv4' },
    ips: { type: 'string', anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }] },
    part: { type: 'string', pattern: 'a\\.b', allOf: [{ pattern: '^x' }, { pattern: '\\?$' }] },
    loose: { type: 'string' },
    maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    int: { type: 'integer' },
  });
});

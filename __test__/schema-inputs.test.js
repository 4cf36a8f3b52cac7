/** FC-F8: inputs are checked by the schema that the user gave, and parsed. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import * as z4 from 'zod';
import * as mini from 'zod/mini';

import { toolCall } from '../emulator/index.js';
import { oracle } from '../scripts/oracle.js';
import { setUp, tool } from './support/boundary.js';

const require = createRequire(join(oracle('schemas'), 'package.json'));
const { z: z3 } = require('zod-3');
const v = require('valibot');
const { toStandardJsonSchema } = require('@valibot/to-json-schema');
const { type } = require('arktype');

/** Calls the tool once and gives what it got and what the model was told. */
async function call(t, parameters, input) {
  const seen = [];
  const { emulator, session } = await setUp(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Done.' },
      { reply: toolCall('weather', input) },
    ],
    tools: [tool('weather', (given) => void seen.push(given), { parameters })],
  });
  const { text } = await session.prompt('hi');
  assert.equal(text, 'Done.');
  const [result] = emulator.requests[1].body.messages.at(-1).content;
  return { seen, isError: result.is_error === true, told: JSON.stringify(result.content) };
}

const shape = (z) => ({
  days: z.coerce.number().default(3),
  city: z.string().transform(async (text) => text.toUpperCase()),
  tags: z
    .string()
    .transform((text) => new Set(text.split(',')))
    .optional(),
  deep: z.object({ on: z.boolean().default(true), n: z.number().optional() }),
});
const SOURCES = {
  'zod 4': z4.object(shape(z4)),
  'zod 4, raw shape': shape(z4),
  'zod 4.0, raw shape': shape(require('zod-4-0').z),
  'zod 4.1': require('zod-4-1').z.object(shape(require('zod-4-1').z)),
  'zod 3': z3.object(shape(z3)),
  'zod 3, raw shape': shape(z3),
  valibot: toStandardJsonSchema(
    v.objectAsync({
      days: v.optional(v.pipe(v.union([v.number(), v.string()]), v.transform(Number)), 3),
      city: v.pipeAsync(
        v.string(),
        v.transformAsync(async (text) => text.toUpperCase()),
      ),
      tags: v.optional(
        v.pipe(
          v.string(),
          v.transform((text) => new Set(text.split(','))),
        ),
      ),
      deep: v.object({ on: v.optional(v.boolean(), true), n: v.optional(v.number()) }),
    }),
  ),
};

for (const [name, parameters] of Object.entries(SOURCES)) {
  test(`FC-F8: ${name}: execute gets the parsed value`, async (t) => {
    const input = { city: 'x', days: '5', tags: 'a,b', deep: {}, extra: 1 };
    const { seen, isError } = await call(t, parameters, input);
    assert.equal(isError, false);
    assert.deepEqual(seen, [{ days: 5, city: 'X', tags: new Set(['a', 'b']), deep: { on: true } }]);
  });

  test(`FC-F8: ${name}: what is missing gets its default, or stays missing`, async (t) => {
    const { seen } = await call(t, parameters, { city: 'x', deep: { on: false } });
    assert.deepEqual(seen, [{ days: 3, city: 'X', deep: { on: false } }]);
  });

  test(`FC-F8: ${name}: an input that does not fit is told to the model`, async (t) => {
    const { seen, isError, told } = await call(t, parameters, { city: 5, deep: { n: 'x' } });
    assert.deepEqual(seen, []);
    assert.equal(isError, true);
    assert.match(told, /InputValidationError.*weather.*does not fit its schema/);
    assert.match(told, /\\n- city: .+\\n- deep\/n: /);
  });
}

test('FC-F8: zod/mini and arktype check inputs too', async (t) => {
  const sources = [
    mini.object({ days: mini.number() }),
    { days: mini.number() },
    type({ days: 'number' }),
  ];
  for (const parameters of sources) {
    const bad = await call(t, parameters, { days: 'x' });
    assert.deepEqual([bad.seen, bad.isError], [[], true]);
    assert.match(bad.told, /InputValidationError.*\\n- days: /);
    assert.deepEqual((await call(t, parameters, { days: 2 })).seen, [{ days: 2 }]);
  }
});

test('FC-F8: a Standard JSON Schema without a check is checked by its JSON Schema', async (t) => {
  const schema = { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] };
  const jsonSchema = { input: () => schema, output: () => schema };
  const parameters = { '~standard': { version: 1, vendor: 'mine', jsonSchema } };
  assert.deepEqual((await call(t, parameters, { a: 1 })).seen, [{ a: 1 }]);
  assert.match((await call(t, parameters, { a: 'x' })).told, /InputValidationError.*\\n- a: /);
});

test('FC-F8: a model that gets all wrong is told eight faults and their number', async (t) => {
  const keys = Array.from({ length: 12 }, (_, at) => [`k${at}`, z3.string()]);
  const { told } = await call(t, Object.fromEntries(keys), {});
  assert.match(told, /- k7: Required\\n- and 4 more/);
});

const TREE = {
  type: 'object',
  properties: { root: { $ref: '#/$defs/node' }, also: { $ref: '#/definitions/word' } },
  required: ['root'],
  additionalProperties: false,
  $defs: {
    node: {
      type: 'object',
      properties: {
        name: { type: 'string' },
        children: { type: 'array', items: { $ref: '#/$defs/node' } },
      },
      required: ['name'],
      unevaluatedProperties: false,
    },
  },
  definitions: { word: { type: 'string', pattern: '^\\w+$' } },
};

for (const $schema of [
  undefined,
  'http://json-schema.org/draft-07/schema#',
  'https://json-schema.org/draft/2020-12/schema',
]) {
  test(`FC-F8: references and recursion in a JSON Schema of ${$schema}`, async (t) => {
    const parameters = $schema ? { $schema, ...TREE } : TREE;
    const good = { root: { name: 'a', children: [{ name: 'b', children: [] }] }, also: 'x' };
    assert.deepEqual((await call(t, parameters, good)).seen, [good]);
    const bad = await call(t, parameters, { root: { name: 'a', children: [{ name: 5 }] } });
    assert.match(bad.told, /- root\/children\/0\/name: 5 is not of type/);
    assert.match((await call(t, parameters, { root: { name: 'a' }, b: 1 })).told, /- input: .*b/);
  });
}

test('FC-F8: recursive schemas of zod 3 and 4, and a reference at the root', async (t) => {
  const lazy = (z) => {
    const node = z.object({ name: z.string(), kids: z.lazy(() => z.array(node)).optional() });
    return node;
  };
  const root = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        properties: {
          name: { type: 'string' },
          kids: { type: 'array', items: { $ref: '#/$defs/node' } },
        },
        required: ['name'],
      },
    },
  };
  const wrapped = z3.lazy(() => lazy(z3));
  for (const parameters of [
    lazy(z3),
    lazy(z4),
    { node: lazy(z3) },
    { node: lazy(z4) },
    root,
    wrapped,
  ]) {
    const isShape = 'node' in parameters;
    const wrap = (node) => (isShape ? { node } : node);
    const good = wrap({ name: 'a', kids: [{ name: 'b', kids: [] }] });
    assert.deepEqual((await call(t, parameters, good)).seen, [good]);
    const bad = await call(t, parameters, wrap({ name: 'a', kids: [{ name: 5 }] }));
    assert.match(bad.told, /kids\/0\/name: /);
  }
});

test('FC-F8: a JSON Schema reaches the model unchanged, but for its type', async (t) => {
  const parameters = { ...TREE, 'x-mine': [1, { a: null }], title: undefined };
  const noType = { properties: { a: { const: { $ref: 'http://x/' } } } };
  const { emulator, session } = await setUp(t, {
    tools: [tool('a', () => 1, { parameters }), tool('b', () => 1, { parameters: noType })],
  });
  await session.prompt('hi');
  const [a, b] = emulator.requests[0].body.tools.map((shown) => shown.input_schema);
  assert.deepEqual(a, { ...TREE, 'x-mine': [1, { a: null }] });
  assert.deepEqual(b, { ...noType, type: 'object' });
});

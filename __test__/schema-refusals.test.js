/** FC-F8: what cannot be a schema is an error that names the tool and the place. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import * as z4 from 'zod';
import * as mini from 'zod/mini';

import { InvalidConfigError, createAgent } from '../index.js';
import { oracle } from '../scripts/oracle.js';
import { assertRefused, errorOf, offline, tool } from './support/boundary.js';

const require = createRequire(join(oracle('schemas'), 'package.json'));
const { z: z3 } = require('zod-3');
const v = require('valibot');
const { toStandardJsonSchema } = require('@valibot/to-json-schema');
const { type } = require('arktype');

/** The tool is the second one; `place` follows `config.tools[1].parameters`. */
async function refused(parameters, place, ...words) {
  const tools = [tool('first'), tool('my_tool', () => 1, { parameters })];
  const error = await errorOf(() => createAgent(offline({ tools })));
  const where = `config.tools[1].parameters${place}`;
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'tool "my_tool": ', where, ...words);
  const { message } = error;
  assert.match(message.slice(message.indexOf(where) + where.length), /^ |^\.type |^:/, message);
}

const KINDS = ['bigint', 'date', 'symbol', 'undefined', 'void', 'nan'];
for (const [name, z] of Object.entries({
  'zod 4': z4,
  'zod/mini': mini,
  'zod 4.0': require('zod-4-0').z,
  'zod 3': z3,
})) {
  test(`FC-F8: what JSON cannot say in ${name}`, async () => {
    for (const kind of KINDS) {
      await refused(z.object({ ok: z.string(), when: z[kind]() }), '.when');
      await refused({ ok: z.string(), when: z[kind]() }, '.when');
      const deep = z.object({ a: z.object({ list: z.array(z.union([z.string(), z[kind]()])) }) });
      await refused(deep, '.a.list[*]');
      await refused(z.object({ pair: z.tuple([z.string(), z[kind]()]) }), '.pair[1]');
      await refused(z.object({ map: z.record(z.string(), z[kind]()) }), '.map.*');
    }
    await refused(z.object({ 'a b': z.map(z.string(), z.string()) }), '["a b"]');
    await refused(z.object({ a: z.set(z.string()) }), '.a');
    await refused(z.object({ a: z.instanceof(Date) }), '.a');
    await refused(z.object({ a: z.literal(10n) }), '.a');
    await refused(
      z.lazy(() => z.object({ when: z.date() })),
      '.when',
    );
    await refused(z.string(), '');
    await refused(z.any(), '', 'does not describe an object');
    await refused(z.array(z.string()), '');
  });
}

test('FC-F8: transforms without an input, defaults, functions of zod', async () => {
  await refused(z4.object({ a: z4.transform(String) }), '.a', 'Transforms');
  await refused(z4.object({ a: z4.coerce.date() }), '.a', 'Date');
  await refused(z3.object({ a: z3.function() }), '.a', 'Function');
  await refused(z3.object({ a: z3.promise(z3.string()) }), '.a', 'Promise');
  await refused(z3.object({ a: z3.any().default(1n) }), '.properties.a.default', 'bigint');
  const throws = z3.string().default(() => {
    throw new Error('no default today');
  });
  await refused(z3.object({ a: throws }), '.a', 'no default today');
  await refused(z4.object({ a: z4.string().default(10n) }), '.a', 'BigInt');
});

test('FC-F8: kinds and checks of zod 3 that nobody knows are refused, not skipped', async () => {
  const odd = z3.string();
  odd._def = { ...odd._def, typeName: 'ZodHologram' };
  await refused(z3.object({ a: odd }), '.a', 'Hologram');
  const checked = z3.string()._addCheck({ kind: 'smell' });
  await refused(z3.object({ a: checked }), '.a', '"smell"');
  const endless = () => z3.lazy(endless);
  await refused(z3.object({ a: z3.lazy(endless) }), '.a', 'nested too deeply');
});

test('FC-F8: raw shapes that are not of one zod', async () => {
  await refused({ a: z4.string(), b: 5 }, '.b', 'not a zod type');
  await refused({ a: z4.string(), b: z3.string() }, '.b', 'zod 3');
  await refused({ a: z3.string(), b: undefined }, '.b', 'not a zod type');
  await refused({ a: z3.string(), b: { type: 'string' } }, '.b', 'not a zod type');
});

test('FC-F8: zod/mini before 4.2', async () => {
  const old = require('zod-4-0/mini');
  await refused(old.object({ a: old.string() }), '', 'update zod');
  await refused({ a: old.string() }, '', 'update zod');
});

test('FC-F8: a Standard Schema without a JSON Schema is told what to do', async () => {
  const validate = (value) => ({ value });
  const mine = { '~standard': { version: 1, vendor: 'mine', validate } };
  await refused(mine, '', 'mine', 'give a JSON Schema');
  await refused(v.object({ a: v.string() }), '', 'valibot', 'toStandardJsonSchema');
  const input = () => {
    throw new Error('only XML');
  };
  await refused({ '~standard': { ...mine['~standard'], jsonSchema: { input } } }, '', 'only XML');
  const empty = { input: () => ({}) };
  await refused(
    { '~standard': { ...mine['~standard'], jsonSchema: empty } },
    '',
    'does not describe an object',
  );
});

test('FC-F8: what JSON cannot say in valibot and arktype', async () => {
  await refused(toStandardJsonSchema(v.object({ a: v.array(v.date()) })), '.a[*]', 'date');
  await refused(toStandardJsonSchema(v.object({ a: v.optional(v.bigint()) })), '.a', 'bigint');
  await refused(type({ a: { 'when?': 'Date' } }), '.a.when', 'date');
  await refused(type({ a: 'bigint' }), '.a', 'bigint');
  await refused(type({ a: 'symbol' }), '.a', 'symbol');
  await refused(type('string'), '');
});

test('FC-F8: what JSON cannot say in a JSON Schema', async () => {
  const property = (a) => ({ type: 'object', properties: { a } });
  const values = [
    [() => 1, 'function'],
    [1n, 'bigint'],
    [Symbol('x'), 'symbol'],
    [new Date(0), 'Date'],
    [new Map(), 'Map'],
    [NaN, 'NaN'],
    [-Infinity, '-Infinity'],
  ];
  for (const [value, word] of values) {
    await refused(property({ default: value }), '.properties.a.default', word);
    await refused(property({ enum: [1, value] }), '.properties.a.enum[1]', word);
  }
  await refused(property(undefined), '.properties.a', 'undefined');
  await refused(property({ const: undefined }), '.properties.a.const', 'undefined');
  await refused(property({ enum: [undefined] }), '.properties.a.enum[0]', 'undefined');
  await refused(property(z4.string()), '.properties.a', 'another library');
  await refused(property(z3.string()), '.properties.a', 'another library');
  await refused(property(v.string()), '.properties.a', 'another library');
  await refused(property(type('string')), '.properties.a', 'function');
  const loop = property({});
  loop.properties.a = loop;
  await refused(loop, '.properties.a', 'contains itself');
});

test('FC-F8: references that lead out of a JSON Schema, or nowhere', async () => {
  const at = ($ref) => ({ type: 'object', properties: { a: { $ref } } });
  for (const $ref of ['http://127.0.0.1:1/x.json', 'other.json', 'file:///etc/passwd', 'a#/b']) {
    await refused(at($ref), '.properties.a.$ref', JSON.stringify($ref), 'nothing is fetched');
    await refused({ $id: 'http://127.0.0.1:1/me', ...at($ref) }, '');
  }
  await refused(at('#/$defs/nowhere'), '', 'nowhere');
  await refused(at('#nowhere'), '', 'nowhere');
  const own = { $id: 'https://example.com/tool', $defs: { b: { $id: 'b.json', type: 'string' } } };
  createAgent(
    offline({ tools: [tool('t', () => 1, { parameters: { ...own, ...at('b.json') } })] }),
  );
});

test('FC-F8: hostile objects', async () => {
  const fail = () => {
    throw new Error('hands off');
  };
  const traps = ['get', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor'];
  for (const trap of traps) {
    await refused(new Proxy({ type: 'object' }, { [trap]: fail }), '', 'hands off');
  }
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  await refused(proxy, '', 'cannot be read');
  const got = {
    type: 'object',
    properties: Object.defineProperty({}, 'a', { get: fail, enumerable: true }),
  };
  await refused(got, '.properties.a', 'hands off');
  await refused(
    {
      get type() {
        return fail();
      },
    },
    '.type',
    'hands off',
  );
  await refused(
    {
      get _zod() {
        return fail();
      },
    },
    '',
    'hands off',
  );
  await refused(
    {
      get '~standard'() {
        return fail();
      },
    },
    '',
    'hands off',
  );
  await refused(
    z4.object({
      get a() {
        return fail();
      },
    }),
    '',
    'hands off',
  );
  let deep = { type: 'string' };
  for (let at = 0; at < 200; at += 1) deep = { items: deep };
  await refused(deep, '.items'.repeat(61), 'nested too deeply');
  const words = { toString: fail };
  await refused(
    { '~standard': { version: 1, vendor: words, validate() {} } },
    '',
    'an unknown library',
  );
  const throwsOdd = {
    input() {
      throw words;
    },
  };
  await refused({ '~standard': { version: 1, vendor: 'x', jsonSchema: throwsOdd } }, '');
});

test('FC-F8: functions and classes', async () => {
  await refused(() => {}, '', 'function');
  await refused(class Schema {}, '', 'function');
  await refused(new Map(), '', 'Map');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { z } from 'zod';

import { text, toolCalls } from '../emulator/index.js';
import { endsOf, errorsOf, textOf } from './support/gateway-elements.js';
import { deferred } from './support/boundary.js';
import { aborted, gatewayFor, resultsIn, tool } from './support/gateway.js';

const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.') };
const calling = (input) => ({ reply: toolCalls([{ id: 'toolu_1', name: 'work', input }]) });

/** Runs one call and gives how it ended: in the stream, and for the model. */
async function callOnce(t, execute, { input = {}, limits, ...more } = {}) {
  const gateway = await gatewayFor(t, {
    rules: [THEN_DONE, calling(input)],
    tools: [tool('work', execute, more)],
    limits,
  });
  const elements = await gateway.send('go');
  assert.equal(textOf(elements), 'Done.');
  assert.deepEqual(errorsOf(elements), []);
  const [[, status, shown]] = endsOf(elements);
  const [[, told, isError]] = resultsIn(gateway.messages(-1)[2]);
  assert.equal(isError, status === 'failed');
  return { status, shown, told, elements, ...gateway };
}

const VALUES = {
  'a text': ['noon', 'noon', 'noon'],
  'a number': [42, '42', 42],
  zero: [0, '0', 0],
  false: [false, 'false', false],
  'an object': [{ b: 1, a: [2, null] }, '{"b":1,"a":[2,null]}', { b: 1, a: [2, null] }],
  'an empty object': [{}, '{}', {}],
  'an empty list': [[], '[]', []],
  'a date': [new Date(0), '1970-01-01T00:00:00.000Z', '1970-01-01T00:00:00.000Z'],
  'an object with toJSON': [{ toJSON: () => ({ a: 1 }) }, '{"a":1}', { a: 1 }],
  undefined: [undefined, '(no output)', '(no output)'],
  null: [null, '(no output)', '(no output)'],
  'an empty text': ['', '(no output)', '(no output)'],
};

for (const [name, [value, told, shown]] of Object.entries(VALUES)) {
  test(`loop: a tool gives ${name}`, async (t) => {
    const plain = await callOnce(t, () => value);
    assert.deepEqual([plain.told, plain.shown, plain.status], [told, shown, 'completed']);
    const later = await callOnce(t, async () => value);
    assert.deepEqual([later.told, later.shown, later.status], [told, shown, 'completed']);
  });
}

const circular = { name: 'loop' };
circular.self = circular;
const UNWRITABLE = {
  'an object that contains itself': circular,
  'a BigInt': 10n,
  'an object with a BigInt': { id: 10n },
  'an object whose toJSON throws': {
    toJSON() {
      throw new Error('no JSON of me');
    },
  },
};

for (const [name, value] of Object.entries(UNWRITABLE)) {
  test(`loop: a tool gives ${name}, and the model is told that it failed`, async (t) => {
    const { status, told } = await callOnce(t, () => value);
    assert.equal(status, 'failed');
    assert.match(told, /cannot be written as JSON|no JSON of me/);
  });
}

const FAILURES = {
  'an Error': [() => new Error('the disk is full'), /^the disk is full$/],
  'a text': [() => 'just words', /^just words$/],
  'an Error without words': [() => new RangeError(), /^RangeError$/],
  'an object': [() => ({ toString: () => 'my own words' }), /^my own words$/],
  'a plain object with a message': [() => ({ message: 'quota is used up' }), /^quota is used up$/],
  nothing: [() => undefined, /./],
  'an object without any words': [() => Object.create(null), /./],
};

for (const [name, [make, wanted]] of Object.entries(FAILURES)) {
  test(`loop: a tool throws ${name}, now or later`, async (t) => {
    const now = await callOnce(t, () => {
      throw make();
    });
    const later = await callOnce(t, () => Promise.reject(make()));
    for (const { status, told, shown } of [now, later]) {
      assert.equal(status, 'failed');
      assert.match(told, wanted);
      assert.equal(shown, told);
    }
  });
}

const JSON_SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } },
  required: ['city'],
  additionalProperties: false,
};
const SCHEMAS = {
  'a JSON Schema': JSON_SCHEMA,
  'a zod schema': z.strictObject({ city: z.string(), days: z.int().min(1).optional() }),
};
const VIOLATIONS = [
  [{}, /city/],
  [{ city: 5 }, /city/],
  [{ city: 'Beijing', days: 0 }, /days/],
  [{ city: 'Beijing', extra: true }, /extra/],
];

for (const [name, parameters] of Object.entries(SCHEMAS)) {
  test(`loop: an input that breaks ${name} does not run the tool`, async (t) => {
    for (const [input, words] of VIOLATIONS) {
      let runs = 0;
      const { status, told } = await callOnce(t, () => (runs += 1), { parameters, input });
      assert.equal(runs, 0);
      assert.equal(status, 'failed');
      assert.match(told, words);
      assert.match(told, /InputValidationError.*work/s);
    }
  });

  test(`loop: an input that fits ${name} runs the tool`, async (t) => {
    const inputs = [];
    const input = { city: '北京', days: 2 };
    const { emulator } = await callOnce(t, (given) => inputs.push(given), { parameters, input });
    assert.deepEqual(inputs, [input]);
    const { input_schema: schema } = emulator.requests[0].body.tools[0];
    assert.deepEqual([schema.type, schema.required], ['object', ['city']]);
  });
}

test('loop: zod defaults and conversions reach the tool, async checks too', async (t) => {
  const inputs = [];
  const parameters = z.object({
    city: z.string().trim(),
    mode: z.enum(['a', 'b']).default('a'),
    days: z.coerce.number().refine(async (days) => days > 0),
  });
  await callOnce(t, (given) => inputs.push(given), {
    parameters,
    input: { city: ' Beijing ', days: '3' },
  });
  assert.deepEqual(inputs, [{ city: 'Beijing', mode: 'a', days: 3 }]);
});

test('loop: a JSON Schema reaches the gateway unchanged', async (t) => {
  const parameters = {
    ...JSON_SCHEMA,
    $schema: 'http://json-schema.org/draft-07/schema#',
    'x-y': 1,
  };
  const { emulator } = await callOnce(t, () => 1, { parameters, input: { city: 'a' } });
  assert.deepEqual(emulator.requests[0].body.tools[0].input_schema, parameters);
});

for (const [name, fields] of Object.entries({
  'its own limit': { timeoutMs: 50 },
  'the limit of the agent': { limits: { toolTimeoutMs: 50 } },
})) {
  test(`loop: a tool that takes too long is stopped by ${name}`, async (t) => {
    const stopped = deferred();
    const execute = (_, { signal }) => {
      aborted(signal).then(stopped.resolve);
      return new Promise(() => {});
    };
    const { status, told } = await callOnce(t, execute, fields);
    assert.equal(status, 'failed');
    assert.match(told, /50 ms/);
    await stopped.promise;
  });
}

test('loop: a tool has a context of its call', async (t) => {
  const contexts = [];
  const { session } = await callOnce(t, (_, context) => {
    contexts.push(context);
  });
  const [{ signal, idempotencyKey, ...context }] = contexts;
  assert.deepEqual(context, {
    toolUseId: 'toolu_1',
    conversationId: session.id,
    userId: 'ann',
    envId: 'test-env',
  });
  assert.equal(signal.aborted, false);
  assert.ok(idempotencyKey.includes('toolu_1'));
});

test('loop: a tool of a class keeps its this', async (t) => {
  class Counter {
    name = 'work';
    description = 'counts';
    parameters = z.object({});
    #count = 0;

    execute() {
      this.#count += 1;
      return this.#count;
    }
  }
  const { send, messages } = await gatewayFor(t, {
    rules: [THEN_DONE, calling({})],
    tools: [new Counter()],
  });
  await send('one');
  await send('two');
  assert.equal(resultsIn(messages(-1).at(-1))[0][1], '2');
});

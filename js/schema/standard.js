/**
 * Schemas of any library that follows Standard Schema and Standard JSON Schema.
 *
 * @module
 * @see https://standardschema.dev/json-schema
 */
import { SchemaFault, wordsOf } from './fault.js';
import { faultsOf } from './issues.js';
import { optionsOf, placeOf } from './vendors.js';

/** In the order in which they are asked for. */
const TARGETS = ['draft-07', 'draft-2020-12'];
const HELP = {
  arktype: 'use arktype 2.1.28 or later',
  effect: 'wrap it with Schema.toStandardJSONSchemaV1',
  valibot: 'wrap it with toStandardJsonSchema of @valibot/to-json-schema',
  zod: 'use zod 3.25 or later',
};

export function isStandard(value) {
  return typeof value['~standard'] === 'object' && value['~standard'] !== null;
}

/**
 * @param {object} schema
 * @returns {import('../schema.js').Parameters}
 */
export function readStandard(schema) {
  const { vendor, validate, jsonSchema } = schema['~standard'];
  if (typeof jsonSchema?.input !== 'function') {
    const name = typeof vendor === 'string' ? vendor : 'an unknown library';
    const help = Object.hasOwn(HELP, name) ? HELP[name] : 'give a JSON Schema instead';
    throw new SchemaFault(
      '',
      `is a Standard Schema of ${name} that has no JSON Schema for the model: ${help}`,
    );
  }
  const parameters = { schema: convert(schema) };
  if (typeof validate !== 'function') return parameters;
  return { ...parameters, check: (input) => check(schema, input) };
}

function convert(schema) {
  const { vendor, jsonSchema } = schema['~standard'];
  const errors = [];
  for (const target of TARGETS) {
    try {
      return jsonSchema.input({ target, ...optionsOf(vendor) });
    } catch (error) {
      errors.push(error);
    }
  }
  const [error] = errors;
  const place = placeOf(vendor, schema, error);
  throw new SchemaFault(place, `cannot be written as a JSON Schema: ${wordsOf(error)}`, error);
}

async function check(schema, input) {
  const { issues, value } = await schema['~standard'].validate(input);
  return issues ? { faults: faultsOf(issues) } : { value };
}

/**
 * Schemas and raw shapes of zod 4, of its classic and its mini form.
 *
 * @module
 */
import { SchemaFault, step, wordsOf } from './fault.js';
import { outcomeOf } from './issues.js';
import { coreOf, metadataFor } from './zod4-core.js';

const OPTIONS = { io: 'input', target: 'draft-7' };

export function isZod4(value) {
  return typeof value._zod?.def === 'object' && typeof value['~standard'] === 'object';
}

/**
 * @param {object} schema
 * @returns {import('../schema.js').Parameters}
 */
export function readZod4(schema) {
  return {
    schema: convertNaming(schema),
    check: async (input) => outcomeOf(await schema.safeParseAsync(input)),
  };
}

/**
 * @param {Record<string, object>} shape
 * @returns {import('../schema.js').Parameters}
 */
export function readZod4Shape(shape) {
  const core = coreOf(Object.values(shape)[0], 'write z.object({...}) around the shape');
  const schema = new core.$ZodObject({ type: 'object', shape });
  return {
    schema: convertNaming(schema),
    check: async (input) => outcomeOf(await core.safeParseAsync(schema, input)),
  };
}

/** Converts; a failure names the innermost part that fails. */
function convertNaming(schema) {
  try {
    return convert(schema);
  } catch (error) {
    if (error instanceof SchemaFault) throw error;
    throw locate(schema, '', error, new Set());
  }
}

/** The schema itself knows how since zod 4.2; before, and in zod/mini, the package does. */
function convert(schema) {
  if (typeof schema.toJSONSchema === 'function') return schema.toJSONSchema(OPTIONS);
  const core = coreOf(schema, 'give z.toJSONSchema(schema) instead');
  return core.toJSONSchema(schema, { ...OPTIONS, metadata: metadataFor(core) });
}

function locate(schema, place, error, seen) {
  seen.add(schema);
  for (const [at, part] of partsOf(schema)) {
    const failure = seen.has(part) ? undefined : failureOf(part);
    if (failure) return locate(part, place + at, failure, seen);
  }
  return new SchemaFault(place, `cannot be written as a JSON Schema: ${wordsOf(error)}`, error);
}

function failureOf(schema) {
  try {
    convert(schema);
    return undefined;
  } catch (error) {
    return error;
  }
}

/** The schemas that a schema is made of, each with the step that leads to its values. */
function partsOf({ _zod: { def } }) {
  const { shape = {}, items = [], options = [] } = def;
  const parts = [
    ...Object.keys(shape).map((key) => [step(key), shape[key]]),
    ['[*]', def.element],
    ...items.map((item, at) => [`[${at}]`, item]),
    ['[*]', def.rest],
    ['.*', def.valueType],
    ['.*', def.catchall],
    ...[...options, def.innerType, def.in, def.out, def.left, def.right].map((part) => ['', part]),
    ['', def.type === 'lazy' ? def.getter() : undefined],
  ];
  return parts.filter(([, part]) => part?._zod);
}

/**
 * Tool parameters: from what users write to JSON Schema and a check of inputs.
 *
 * @module
 */
import { InvalidConfigError, KernelError } from './errors.js';
import { SchemaFault, readField, step, wordsOf } from './schema/fault.js';
import { readJsonSchema } from './schema/json.js';
import { isStandard, readStandard } from './schema/standard.js';
import { isZod3, readZod3, readZod3Shape } from './schema/zod3.js';
import { isZod4, readZod4, readZod4Shape } from './schema/zod4.js';

/**
 * @typedef {object} Parameters
 * @property {unknown} schema JSON Schema for the model
 * @property {((input: unknown) => Promise<{ value: unknown } | { faults: string[] }>)} [check]
 *   checks an input and gives the parsed value; absent: the core checks against the schema
 */

/** Keywords without which a schema says nothing about an object. */
const OBJECT_KEYWORDS = ['type', '$ref', 'anyOf', 'oneOf', 'allOf'];

/** What tells the types of a zod, and what reads a raw shape of them. */
const ZODS = [
  [isZod4, readZod4Shape],
  [isZod3, readZod3Shape],
];

/**
 * @param {unknown} parameters a schema or a raw shape of zod 3 or 4, a Standard JSON Schema, or a
 *   JSON Schema; what is no object is left for the core to refuse
 * @param {string} path
 * @param {unknown} [name] of the tool
 * @returns {Parameters}
 */
export function readParameters(parameters, path, name) {
  const isObject = typeof parameters === 'object' && parameters !== null;
  if (!isObject && typeof parameters !== 'function') return { schema: parameters };
  try {
    return readObject(parameters);
  } catch (error) {
    if (error instanceof KernelError) throw error;
    const { place, what, cause } =
      error instanceof SchemaFault
        ? error
        : new SchemaFault('', `cannot be read: ${wordsOf(error)}`, error);
    const tool = typeof name === 'string' ? `tool "${name.slice(0, 80)}": ` : '';
    throw new InvalidConfigError(`${tool}${path}${place} ${what}`, cause);
  }
}

function readObject(parameters) {
  const reader = readerFor(parameters);
  if (!reader) return { schema: readJsonSchema(parameters) };
  const { schema, check } = reader(parameters);
  const converted = readJsonSchema(schema);
  if (!OBJECT_KEYWORDS.some((key) => key in converted)) {
    throw new SchemaFault('', 'does not describe an object, which the input of a tool is');
  }
  return { schema: converted, check };
}

/** What reads a schema of a library; nothing for a JSON Schema. */
function readerFor(parameters) {
  if (isZod4(parameters)) return readZod4;
  if (isZod3(parameters)) return readZod3;
  if (isStandard(parameters)) return readStandard;
  if (typeof parameters === 'function') throw new SchemaFault('', 'is a function, not a schema');
  return shapeReader(parameters);
}

/** A raw shape is an object with a zod type in it; then all its values must be of the same zod. */
function shapeReader(shape) {
  if (Array.isArray(shape)) return undefined;
  const fields = Object.keys(shape).map((key) => [key, readField(shape, key, '')]);
  const is = (test, value) => value !== null && test(Object(value));
  const [test, read] = ZODS.find(([test]) => fields.some(([, value]) => is(test, value))) ?? [];
  if (!test) return undefined;
  const [key, odd] = fields.find(([, value]) => !is(test, value)) ?? [];
  if (key === undefined) return () => read(Object.fromEntries(fields));
  const what = is(isZod3, odd) ? 'is of zod 3, and others are of zod 4' : 'is not a zod type';
  throw new SchemaFault(step(key), `${what}: a shape has types of one zod only`);
}

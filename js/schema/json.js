/**
 * JSON Schema as users write it: copied once, and refused where JSON cannot say it.
 *
 * @module
 */
import { SchemaFault, readField, step } from './fault.js';

const MAX_DEPTH = 60;
const MAX_VALUES = 50_000;
/** Keywords whose value maps names to schemas. */
const MAPS = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
/** Keywords whose value is data, in which nothing is a keyword. */
const DATA = new Set(['const', 'enum', 'default', 'examples']);

/**
 * @param {unknown} schema
 * @returns {Record<string, unknown>} a copy that JSON can say and whose references stay inside it
 */
export function readJsonSchema(schema) {
  const walk = { seen: new Set(), values: 0, references: [], hasIds: false };
  const copied = copy(schema, '', 'schema', walk);
  // An identifier may be what a reference means; the core, which knows all of them, decides.
  const [[place, reference] = []] = walk.hasIds ? [] : walk.references;
  if (place !== undefined) {
    throw new SchemaFault(
      place,
      `is ${JSON.stringify(reference)}, which is not part of the schema, and nothing is fetched: ` +
        'put the definition under $defs and write "#/$defs/<name>"',
    );
  }
  return copied;
}

function copy(value, place, kind, walk) {
  walk.values += 1;
  if (walk.seen.size > MAX_DEPTH || walk.values > MAX_VALUES) {
    throw new SchemaFault(place, 'is nested too deeply or has too many values');
  }
  switch (typeof value) {
    case 'object':
      return value === null ? null : copyObject(value, place, kind, walk);
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new SchemaFault(place, `is ${value}, which JSON cannot say`);
    default:
      throw new SchemaFault(place, `is ${nameOf(value)}, which JSON cannot say`);
  }
}

function nameOf(value) {
  return value === undefined ? 'undefined' : `a ${typeof value}`;
}

function copyObject(value, place, kind, walk) {
  if (walk.seen.has(value)) {
    throw new SchemaFault(place, 'contains itself: name the schema under $defs and use $ref');
  }
  walk.seen.add(value);
  try {
    if (Array.isArray(value)) {
      return Array.from(value, (item, at) => copy(item, `${place}[${at}]`, kind, walk));
    }
    refuseInstance(value, place);
    const pairs = Object.keys(value).map((key) => [key, readField(value, key, place)]);
    if (kind === 'schema') note(Object.fromEntries(pairs), place, walk);
    return Object.fromEntries(
      pairs
        .filter(([key, item]) => item !== undefined || kind !== 'schema' || key === 'const')
        .map(([key, item]) => [key, copy(item, place + step(key), kindOf(key, kind), walk)]),
    );
  } finally {
    walk.seen.delete(value);
  }
}

function kindOf(key, kind) {
  if (kind === 'map') return 'schema';
  if (kind === 'data' || DATA.has(key)) return 'data';
  return MAPS.has(key) ? 'map' : 'schema';
}

function note(schema, place, walk) {
  if (typeof schema.$id === 'string' || typeof schema.id === 'string') walk.hasIds = true;
  for (const key of ['$ref', '$dynamicRef']) {
    const reference = schema[key];
    if (typeof reference === 'string' && !reference.startsWith('#')) {
      walk.references.push([place + step(key), reference]);
    }
  }
}

function refuseInstance(value, place) {
  if ('_def' in value || '_zod' in value || isStandard(value)) {
    throw new SchemaFault(
      place,
      'is a schema of another library inside a JSON Schema: use one of the two alone',
    );
  }
  const prototype = Object.getPrototypeOf(value);
  // Another realm has another Object.prototype: its plain objects end their chain there too.
  if (prototype === null || Object.getPrototypeOf(prototype) === null) return;
  const name = prototype.constructor?.name;
  const what = typeof name === 'string' && name ? name : 'a class';
  throw new SchemaFault(place, `is an instance of ${what}, which JSON cannot say`);
}

/** Libraries hang themselves on JSON Schemas that they wrote, where JSON does not see it. */
function isStandard(value) {
  const own = Object.getOwnPropertyDescriptor(value, '~standard');
  return own ? own.enumerable : '~standard' in value;
}

/**
 * What is special about the Standard JSON Schemas of single libraries.
 *
 * @module
 */
import { step } from './fault.js';

const MAX_DEPTH = 60;

/** Makes arktype refuse what it would leave out, so that the model would see an empty schema. */
const ARKTYPE = { libraryOptions: { fallback: arktypeFallback } };
/** What arktype may leave out when a schema remains: checks that only code can make. */
const CHECKS = new Set(['morph', 'patternIntersection', 'predicate']);

/** Lets valibot leave out what only code can check, as all other libraries do. */
const VALIBOT = {
  ignoreActions: ['check', 'check_items', 'partial_check', 'raw_check'],
};

/**
 * Further options of a library's converter.
 *
 * @param {unknown} vendor
 */
export function optionsOf(vendor) {
  if (vendor === 'arktype') return ARKTYPE;
  return vendor === 'valibot' ? { libraryOptions: VALIBOT } : {};
}

function arktypeFallback({ code, base, proto, domain, unit }) {
  if (CHECKS.has(code) && Object.keys(base).length > 0) return base;
  throw new Error(`JSON has no ${proto?.name ?? domain ?? (code === 'unit' ? typeof unit : code)}`);
}

/**
 * Where in a schema a conversion failed, as far as it can be told.
 *
 * @param {unknown} vendor
 * @param {object} schema
 * @param {unknown} error
 * @returns {string}
 */
export function placeOf(vendor, schema, error) {
  try {
    if (vendor === 'arktype') return arktypePlace(schema);
    const [, type] = /^The "(\w+)" /.exec(error.message) ?? [];
    if (vendor === 'valibot' && type) return valibotPlace(valibotRoot(schema), type) ?? '';
  } catch {
    // The schema is not of the make that is known here: the error stands without a place.
  }
  return '';
}

function arktypePlace(schema, depth = 0) {
  const bad = depth < MAX_DEPTH ? propsOf(schema).find(({ value }) => !converts(value)) : undefined;
  return bad ? step(String(bad.key)) + arktypePlace(bad.value, depth + 1) : '';
}

/** Only types of one object have properties. */
function propsOf(schema) {
  try {
    return [...schema.props];
  } catch {
    return [];
  }
}

function converts(schema) {
  try {
    schema['~standard'].jsonSchema.input({ target: 'draft-07', ...ARKTYPE });
    return true;
  } catch {
    return false;
  }
}

/** The schema itself, which only its converter sees; it visits the root last. */
function valibotRoot(schema) {
  let root;
  const overrideSchema = ({ valibotSchema }) => void (root = valibotSchema);
  const libraryOptions = { ...VALIBOT, errorMode: 'ignore', overrideSchema };
  schema['~standard'].jsonSchema.input({ target: 'draft-07', libraryOptions });
  return root;
}

/** valibot names the type of the schema or of the action that it cannot convert. */
function valibotPlace(schema, type, depth = 0) {
  if (schema.type === type) return '';
  if (depth > MAX_DEPTH) return undefined;
  for (const [at, part] of valibotParts(schema)) {
    const place = valibotPlace(part, type, depth + 1);
    if (place !== undefined) return at + place;
  }
  return undefined;
}

function valibotParts({ entries = {}, item, items = [], value, rest, wrapped, options, pipe }) {
  const [first] = pipe ?? [];
  const same = [wrapped, ...(options ?? []), ...(pipe ?? []).filter((part) => part !== first)];
  return [
    ...Object.entries(entries).map(([key, part]) => [step(key), part]),
    ['[*]', item],
    ...items.map((part, at) => [`[${at}]`, part]),
    ['.*', value],
    ['.*', rest],
    ...same.map((part) => ['', part]),
  ].filter(([, part]) => typeof part === 'object' && part !== null);
}

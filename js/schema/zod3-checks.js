/**
 * Strings and numbers of zod 3, and the checks on them.
 *
 * @module
 */
import { SchemaFault } from './fault.js';

/** Checks that change the value, or say no more than the type. */
const SILENT = new Set(['trim', 'toLowerCase', 'toUpperCase', 'finite', 'time']);
const FORMATS = {
  base64url: 'base64url',
  cuid: 'cuid',
  cuid2: 'cuid2',
  date: 'date',
  duration: 'duration',
  email: 'email',
  emoji: 'emoji',
  jwt: 'jwt',
  nanoid: 'nanoid',
  ulid: 'ulid',
  url: 'uri',
  uuid: 'uuid',
};
const VERSIONED = { ip: ['ipv4', 'ipv6'], cidr: ['cidrv4', 'cidrv6'] };
const SPECIAL = /[.*+?^${}()|[\]\\]/g;

/** @param {{ checks: object[] }} def */
export function stringSchema({ checks }, place) {
  const parts = checks.map((check) => stringCheck(check, place));
  return joined({ type: 'string' }, parts);
}

function stringCheck(check, place) {
  const { kind, value, version } = check;
  if (SILENT.has(kind)) return {};
  if (Object.hasOwn(FORMATS, kind)) return { format: FORMATS[kind] };
  if (Object.hasOwn(VERSIONED, kind)) return versioned(VERSIONED[kind], version);
  switch (kind) {
    case 'min':
      return { minLength: value };
    case 'max':
      return { maxLength: value };
    case 'length':
      return { minLength: value, maxLength: value };
    case 'includes':
      return { pattern: escaped(value) };
    case 'startsWith':
      return { pattern: `^${escaped(value)}` };
    case 'endsWith':
      return { pattern: `${escaped(value)}$` };
    case 'regex':
      // JSON Schema has no flags: without these the pattern would refuse what fits.
      return /[ims]/.test(check.regex.flags) ? {} : { pattern: check.regex.source };
    case 'datetime':
      // Without a zone it is no date-time of JSON Schema.
      return check.local ? {} : { format: 'date-time' };
    case 'base64':
      return { format: 'base64', contentEncoding: 'base64' };
    default:
      throw unknown(kind, place);
  }
}

function versioned([v4, v6], version) {
  if (version === 'v4') return { format: v4 };
  if (version === 'v6') return { format: v6 };
  return { anyOf: [{ format: v4 }, { format: v6 }] };
}

function escaped(text) {
  return text.replace(SPECIAL, '\\$&');
}

/** @param {{ checks: object[] }} def */
export function numberSchema({ checks }, place) {
  const isInteger = checks.some(({ kind }) => kind === 'int');
  const parts = checks.map((check) => numberCheck(check, place));
  return joined({ type: isInteger ? 'integer' : 'number' }, parts);
}

function numberCheck({ kind, value, inclusive }, place) {
  if (kind === 'int' || SILENT.has(kind) || Math.abs(value) === Infinity) return {};
  switch (kind) {
    case 'min':
      return inclusive ? { minimum: value } : { exclusiveMinimum: value };
    case 'max':
      return inclusive ? { maximum: value } : { exclusiveMaximum: value };
    case 'multipleOf':
      return { multipleOf: Math.abs(value) };
    default:
      throw unknown(kind, place);
  }
}

/** One schema of all parts; a keyword that is there already goes into `allOf`. */
function joined(base, parts) {
  const rest = [];
  const schema = { ...base };
  for (const part of parts) {
    if (Object.keys(part).some((key) => key in schema)) rest.push(part);
    else Object.assign(schema, part);
  }
  return rest.length > 0 ? { ...schema, allOf: rest } : schema;
}

/** Sizes of an array. */
export function sizes({ minLength, maxLength, exactLength }) {
  const min = exactLength ?? minLength;
  const max = exactLength ?? maxLength;
  return { ...(min ? { minItems: min.value } : {}), ...(max ? { maxItems: max.value } : {}) };
}

function unknown(kind, place) {
  return new SchemaFault(
    place,
    `has a check that this version does not know: ${JSON.stringify(kind)}`,
  );
}

/**
 * Reads configuration objects, which may be anything, into JSON text.
 *
 * What JSON cannot say becomes a mark that the core understands: functions (called later by
 * number), instances of classes, numbers that are not finite.
 *
 * @module
 */
import { InvalidConfigError } from './errors.js';
import { toJson } from './json.js';

/** Key of a mark; no configuration has a key that begins with NUL. */
const MARK = '\0oak';
const MAX_DEPTH = 64;
const MAX_VALUES = 100_000;
const MAX_CHARACTERS = 16 << 20;

/**
 * Reads a property; a getter that throws is an error that names the property.
 *
 * @param {object} object
 * @param {PropertyKey} key
 * @param {string} path of the object
 */
export function read(object, key, path) {
  try {
    return object[key];
  } catch (error) {
    throw new InvalidConfigError(`${path}.${String(key)} cannot be read: its getter threw`, error);
  }
}

/**
 * The own enumerable properties of an object.
 *
 * @param {object} object
 * @param {string} path of the object
 * @returns {Record<string, unknown>}
 */
export function ownFields(object, path) {
  let keys;
  try {
    keys = Object.keys(object);
  } catch (error) {
    throw new InvalidConfigError(`${path} cannot be read`, error);
  }
  return Object.fromEntries(keys.map((key) => [key, read(object, key, path)]));
}

/**
 * The own keys of an object that are not in a list, for the core to name; their values do not count.
 *
 * @param {object} object
 * @param {string[]} known
 * @returns {Record<string, true>}
 */
export function unknownKeys(object, known) {
  const unknown = Object.keys(object).filter((key) => !known.includes(key));
  return Object.fromEntries(unknown.map((key) => [key, true]));
}

/**
 * Writes a configuration as JSON text.
 *
 * @param {unknown} value
 * @param {string} path name of the value in messages
 * @param {(callback: Function) => number} register keeps a function and gives its number
 * @returns {string}
 */
export function toPlainJson(value, path, register) {
  const walk = { register, seen: new Set(), values: 0, characters: 0 };
  return toJson(plain(value, path, walk, 0) ?? null);
}

function plain(value, path, walk, depth) {
  walk.values += 1;
  if (depth > MAX_DEPTH || walk.values > MAX_VALUES) throw tooLarge(path);
  switch (typeof value) {
    case 'string':
      return text(value, path, walk);
    case 'number':
      return Number.isFinite(value) ? value : mark('number', String(value));
    case 'function':
      return mark('function', 'a function', { index: walk.register(value) });
    case 'bigint':
    case 'symbol':
      return mark(typeof value, `a ${typeof value}`);
    case 'object':
      return value === null ? null : object(value, path, walk, depth);
    default:
      return value;
  }
}

function tooLarge(path) {
  return new InvalidConfigError(`${path} is nested too deeply or has too many values`);
}

function text(value, path, walk) {
  walk.characters += value.length;
  if (walk.characters > MAX_CHARACTERS) {
    throw new InvalidConfigError(
      `${path} makes the configuration longer than ${MAX_CHARACTERS} characters`,
    );
  }
  return value;
}

function object(value, path, walk, depth) {
  if (walk.seen.has(value)) throw new InvalidConfigError(`${path} contains itself`);
  walk.seen.add(value);
  try {
    if (Array.isArray(value)) {
      if (value.length > MAX_VALUES) throw tooLarge(path);
      return Array.from(value).map((item, at) => plain(item, `${path}[${at}]`, walk, depth + 1));
    }
    return isPlain(value) ? fields(value, path, walk, depth) : instance(value, path);
  } finally {
    walk.seen.delete(value);
  }
}

function fields(value, path, walk, depth) {
  const pairs = Object.entries(ownFields(value, path)).filter(([, item]) => item !== undefined);
  return Object.fromEntries(
    pairs.map(([key, item]) => [key, plain(item, `${path}.${key}`, walk, depth + 1)]),
  );
}

/** Whether an object is no instance of a class. */
export function isPlain(value) {
  const prototype = Object.getPrototypeOf(value);
  // Another realm has another Object.prototype: its plain objects end their chain there too.
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** What the core may want to know of an instance: its class and its methods. */
function instance(value, path) {
  const name = read(value, 'constructor', path)?.name;
  const what = `an instance of ${typeof name === 'string' && name ? name : 'a class'}`;
  const backend = read(value, 'backend', path);
  const marked = mark('instance', what, { methods: methodsOf(value) });
  return typeof backend === 'string' ? { ...marked, backend } : marked;
}

function methodsOf(value) {
  const names = new Set();
  for (let at = value; at !== null && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value: member }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      if (typeof member === 'function' && name !== 'constructor') names.add(name);
    }
  }
  return [...names];
}

function mark(type, what, more) {
  return { [MARK]: { type, what, ...more } };
}

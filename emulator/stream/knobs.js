const count = (value) => Number.isInteger(value) && value >= 0;
const positive = (value) => Number.isInteger(value) && value > 0;
const duration = (value) => Number.isFinite(value) && value >= 0;
const flag = (value) => typeof value === 'boolean';
const object = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

/** Every knob with its check and a word on what the check wants. README.md says what they do. */
const KNOBS = {
  latencyMs: [duration, 'milliseconds'],
  firstDeltaMs: [duration, 'milliseconds'],
  chunkDelayMs: [duration, 'milliseconds'],
  textChunk: [positive, 'an integer > 0'],
  splitBytes: [positive, 'an integer > 0'],
  splitAt: [(value) => Array.isArray(value) && value.every(count), 'a list of byte offsets'],
  splitDelayMs: [duration, 'milliseconds'],
  crlf: [flag, 'true or false'],
  comments: [flag, 'true or false'],
  pings: [count, 'an integer >= 0'],
  noEventLine: [flag, 'true or false'],
  unknownEvents: [flag, 'true or false'],
  stallAfter: [count, 'an integer >= 0'],
  stallPings: [positive, 'milliseconds > 0'],
  resetAfter: [count, 'an integer >= 0'],
  truncateAfter: [count, 'an integer >= 0'],
  truncateBytes: [count, 'an integer >= 0'],
  errorAfter: [(value) => object(value) && count(value.events), '{ events, error }'],
  foreignErrors: [flag, 'true or false'],
  invalidJsonAfter: [count, 'an integer >= 0'],
  noMessageStop: [flag, 'true or false'],
  hugeLine: [count, 'a number of bytes'],
  status: [(value) => Number.isInteger(value) && value >= 200 && value <= 599, 'an HTTP status'],
  error: [object, '{ type, message }'],
  headers: [object, 'an object'],
  json: [flag, 'true or false'],
  html: [flag, 'true or false'],
  hangHeaders: [flag, 'true or false'],
  dropConnection: [flag, 'true or false'],
};

/** Names of all knobs. */
export const KNOB_NAMES = Object.keys(KNOBS);

/**
 * Checks knobs; `null` and `undefined` stand for "not set" (a rule can so undo a knob of the
 * emulator).
 *
 * @param {unknown} knobs
 * @param {string} [path] where the knobs stand, for the message
 * @throws {TypeError} that names the first bad knob
 */
export function checkKnobs(knobs, path = 'knobs') {
  if (!object(knobs)) throw new TypeError(`${path}: must be an object`);
  for (const [name, value] of Object.entries(knobs)) {
    if (!Object.hasOwn(KNOBS, name)) {
      throw new TypeError(`${path}.${name}: unknown knob; known: ${KNOB_NAMES.join(', ')}`);
    }
    const [accepts, wanted] = KNOBS[name];
    if (value != null && !accepts(value)) throw new TypeError(`${path}.${name}: must be ${wanted}`);
  }
}

/**
 * Lays knobs over each other; later ones win.
 *
 * @param {...(object | undefined)} layers
 * @returns {object}
 */
export function mergeKnobs(...layers) {
  const merged = Object.assign({}, ...layers);
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value != null));
}

const flag = (value) => typeof value === 'boolean';
const filledText = (value) => typeof value === 'string' && value.trim() !== '';
const anything = () => true;

/**
 * Every option with its check and the words on what the check wants. What is in rules and knobs is
 * checked where they are used.
 */
const OPTIONS = {
  port: [
    (value) => typeof value === 'number',
    'a number from 0 to 65535; leave it out or give 0 for a free port',
  ],
  host: [
    filledText,
    'an address to listen on such as "127.0.0.1", or "0.0.0.0" for all; leave it out for 127.0.0.1',
  ],
  rules: [anything],
  knobs: [anything],
  apiKey: [
    (value) => value === null || filledText(value),
    'a text that is not empty; leave it out for "emulator-key", give null to let everybody in',
  ],
  envId: [(value) => typeof value === 'string', 'a text; leave it out for "emulator-env"'],
  recordRequests: [flag, 'true or false; leave it out for true'],
  validate: [flag, 'true or false; leave it out for true'],
};
const NAMES = Object.keys(OPTIONS).join(', ');

/**
 * Checks the options of `startEmulator`; `undefined` stands for "left out".
 *
 * @param {unknown} options
 * @throws {TypeError | RangeError} that names the first bad option and says what to give instead
 */
export function checkOptions(options) {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new TypeError(
      `options: must be an object such as { port: 8787 }, but got ${show(options)}; leave it out for the defaults`,
    );
  }
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(OPTIONS, name)) {
      throw new TypeError(`unknown emulator option "${name}"; known: ${NAMES}`);
    }
    const [accepts, wanted] = OPTIONS[name];
    if (value !== undefined && !accepts(value)) {
      throw new TypeError(`${name}: must be ${wanted}; got ${show(value)}`);
    }
  }
  checkPortRange(options.port ?? 0);
}

function checkPortRange(port) {
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return;
  throw new RangeError(
    `port: must be a whole number from 0 to 65535; leave it out or give 0 for a free port; got ${port}`,
  );
}

/** A value in a message: short, and never the whole of an object. */
function show(value) {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 40));
  if (typeof value === 'function' || (typeof value === 'object' && value !== null)) {
    return `a value of type ${typeof value}`;
  }
  return String(value);
}

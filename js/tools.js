/**
 * Prepares `config.tools` for the core.
 *
 * @module
 */
import { isPlain, read, unknownKeys } from './plain.js';
import { readParameters } from './schema.js';

/** Fields of a tool; they may live on its class. */
const FIELDS = [
  'name',
  'description',
  'parameters',
  'execute',
  'needsApproval',
  'clientSide',
  'idempotent',
  'timeoutMs',
  'readOnly',
];

/**
 * @param {unknown} tools
 * @returns {unknown} the same list with JSON Schemas and functions that take one argument; anything
 *   of a wrong shape is left for the core to refuse
 */
export function prepareTools(tools) {
  if (!Array.isArray(tools)) return tools;
  return tools.map((tool, at) => prepareTool(tool, `config.tools[${at}]`));
}

function prepareTool(tool, path) {
  if (typeof tool !== 'object' || tool === null || Array.isArray(tool)) return tool;
  const fields = Object.fromEntries(FIELDS.map((key) => [key, read(tool, key, path)]));
  // An instance of a class may keep what it likes; in a plain object an unknown key is a mistake.
  if (isPlain(tool)) Object.assign(fields, unknownKeys(tool, FIELDS));
  const { schema, check } = readParameters(fields.parameters, `${path}.parameters`, fields.name);
  fields.parameters = schema;
  if (isAnsweredOutside(fields)) {
    fields.checkInput = check && faultsOf(check);
    return fields;
  }
  if (typeof fields.execute !== 'function') return fields;
  const calls = new Calls(tool, fields.execute, check);
  fields.execute = calls.execute;
  fields.checkInput = check && calls.check;
  return fields;
}

/** Whether the program that reads the stream answers the calls of a tool. */
function isAnsweredOutside({ execute, clientSide }) {
  return clientSide === true || execute === undefined || execute === null;
}

/** A check that keeps nothing: what a schema makes of an input is for `execute` alone. */
function faultsOf(check) {
  return async ({ input }) => {
    const { faults } = await check(input);
    return faults?.join('\n');
  };
}

/** Parsed inputs that are kept between check and call. */
const KEPT = 1_000;

/** The calls of one tool, whose inputs are checked first and kept as parsed: a schema may make values
 * that JSON cannot carry. */
class Calls {
  #tool;
  #execute;
  #check;
  #parsed = new Map();

  constructor(tool, execute, check) {
    this.#tool = tool;
    this.#execute = execute;
    this.#check = check;
  }

  /** @returns {Promise<string | undefined>} what is wrong with the input */
  check = async ({ input, context }) => {
    const { value, faults } = await this.#check(input);
    if (faults) return faults.join('\n');
    this.#parsed.set(context.idempotencyKey, { value });
    if (this.#parsed.size > KEPT) this.#parsed.delete(this.#parsed.keys().next().value);
    return undefined;
  };

  execute = async ({ input, context }, signal) => {
    const { value } = this.#check
      ? await this.#take(input, context.idempotencyKey)
      : { value: input };
    return this.#execute.call(this.#tool, value, { ...context, signal });
  };

  async #take(input, key) {
    const parsed = this.#parsed.get(key);
    this.#parsed.delete(key);
    return parsed ?? this.#check(input);
  }
}

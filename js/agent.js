/**
 * `createAgent` and the agent that users hold.
 *
 * @module
 */
import { Callbacks } from './callbacks.js';
import { expandChunks } from './chunks.js';
import { InvalidConfigError, KernelError, errorFromCore, traced, typed } from './errors.js';
import { prepareHooks } from './hooks.js';
import { prepareMcpServers } from './mcp/servers.js';
import { helperPath, native } from './native.js';
import { prepareLogger, prepareTelemetry } from './observers.js';
import { ownFields, toPlainJson } from './plain.js';
import { prepareStore } from './session-store/adapt.js';
import { nativeStoreOf } from './session-store/brand.js';
import { Session, callOptions, inputJson, optionsJson } from './session.js';
import { Sessions } from './sessions.js';
import { stopperFor } from './stream.js';
import { prepareToolStore } from './tool-store.js';
import { prepareTools } from './tools.js';

/** One configuration, many sessions. */
class Agent {
  #native;
  #output;
  #sessions;

  constructor(agent, output) {
    this.#native = agent;
    this.#output = output;
    this.#sessions = new Sessions(agent);
  }

  get sessions() {
    return this.#sessions;
  }

  get id() {
    return this.#native.id;
  }

  get name() {
    return this.#native.name ?? undefined;
  }

  async startSession(options) {
    const text = optionsJson(options, 'startSession options');
    const session = await traced(this.#native.startSession(text));
    return new Session(session, this.#output);
  }

  async resumeSession(reference, options) {
    if (typeof reference !== 'string' || reference === '') {
      throw new InvalidConfigError(
        'resumeSession: give a conversation id, or the text of getState()',
      );
    }
    const text = optionsJson(options, 'resumeSession options');
    const session = await traced(this.#native.resumeSession(reference.toWellFormed(), text));
    return new Session(session, this.#output);
  }

  async prompt(input, options) {
    const { signal, ...rest } = callOptions(options, 'prompt options');
    const { stopper, release } = stopperFor(signal);
    try {
      const text = optionsJson(rest, 'prompt options');
      return JSON.parse(await traced(this.#native.prompt(inputJson(input), text, stopper)));
    } finally {
      release();
    }
  }

  async close(options) {
    const { deadlineMs: deadline, ...others } = callOptions(options, 'close options');
    const unknown = Object.keys(others).find((key) => others[key] !== undefined);
    if (unknown !== undefined) {
      throw new InvalidConfigError(
        `close options.${unknown} is not a known option: the only one is deadlineMs`,
      );
    }
    const isTime = Number.isInteger(deadline) && deadline >= 0 && deadline < 2 ** 32;
    if (deadline !== undefined && !isTime) {
      throw new InvalidConfigError(
        'close options.deadlineMs must be a whole number of milliseconds',
      );
    }
    await traced(this.#native.close(deadline));
  }
}

/**
 * Creates an agent.
 *
 * @param {object} config
 * @returns {Agent}
 */
export function createAgent(config) {
  const callbacks = new Callbacks();
  const { text, output, store } = readConfig(config, callbacks);
  const agent = created(() => native.createAgent(text, environment(), callbacks.dispatch, store));
  warn(agent);
  return new Agent(agent, output);
}

/** An error of the core shows where the agent was created. */
function created(create) {
  try {
    return create();
  } catch (error) {
    if (error instanceof KernelError) Error.captureStackTrace(error, createAgent);
    throw error;
  }
}

/** Reads a configuration, which may be anything. */
function readConfig(config, callbacks) {
  return typed('createAgent: the configuration', () => {
    if (typeof config !== 'object' || config === null || Array.isArray(config)) {
      throw new InvalidConfigError('createAgent: the configuration must be an object');
    }
    const fields = ownFields(config, 'config');
    fields.tools = prepareTools(fields.tools);
    fields.mcpServers = prepareMcpServers(fields.mcpServers);
    fields.toolStore = prepareToolStore(fields.toolStore);
    fields.hooks = prepareHooks(fields.hooks);
    fields.logger = prepareLogger(fields.logger);
    fields.telemetry = prepareTelemetry(fields.telemetry);
    const store = prepareStores(fields);
    const text = toPlainJson(fields, 'config', (callback) => callbacks.register(callback));
    const revive = fields.streamFormat === 'events' ? reviveEvents : expandChunks;
    return { text, store, output: { revive, adapter: fields.streamAdapter ?? undefined } };
  });
}

/**
 * Prepares the session store of a configuration, wherever it stands.
 *
 * @returns {object | undefined} its driver in the core, when it is a store of this package
 */
function prepareStores(fields) {
  const { session } = fields;
  let found = nativeStoreOf(fields.sessionStore);
  fields.sessionStore = prepareStore(fields.sessionStore, 'config.sessionStore');
  if (typeof session === 'object' && session !== null && !Array.isArray(session)) {
    const inner = ownFields(session, 'config.session');
    found ??= nativeStoreOf(inner.store);
    inner.store = prepareStore(inner.store, 'config.session.store');
    fields.session = inner;
  }
  return found;
}

/** In the format `'events'` an error is an object. */
function reviveEvents(batch) {
  return batch.map((event) =>
    event.type === 'error' ? { type: 'error', error: errorFromCore(event.error) } : event,
  );
}

function environment() {
  const names = native.environmentVariables();
  const pairs = names.map((name) => [name, process.env[name]]);
  // Without a prototype: what a program put on that of all objects is no variable.
  const found = Object.create(null);
  for (const [name, value] of pairs) if (value !== undefined) found[name] = value;
  found.OAK_HELPER_PATH ||= helperPath;
  return found;
}

let emulatorWarned = false;

function warn(agent) {
  if (agent.unknownKeys.length > 0) {
    const keys = agent.unknownKeys.join(', ');
    process.emitWarning(`createAgent: unknown settings have no effect: ${keys}`, {
      code: 'OAK_UNKNOWN_SETTINGS',
    });
  }
  if (agent.usesEmulator && !emulatorWarned) {
    emulatorWarned = true;
    process.emitWarning('OAK_EMULATOR_HUB is set: agents talk to a local emulator', {
      code: 'OAK_EMULATOR',
    });
  }
}

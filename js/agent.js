/**
 * `createAgent` and the agent that users hold.
 *
 * @module
 */
import { Callbacks } from './callbacks.js';
import { InvalidConfigError, errorFromCore } from './errors.js';
import { prepareHooks } from './hooks.js';
import { native } from './native.js';
import { prepareLogger, prepareTelemetry } from './observers.js';
import { ownFields, toPlainJson } from './plain.js';
import { Session, checkSignal, inputJson } from './session.js';
import { stopperFor } from './stream.js';
import { prepareTools } from './tools.js';

/** One configuration, many sessions. */
class Agent {
  #native;
  #output;

  constructor(agent, output) {
    this.#native = agent;
    this.#output = output;
  }

  get id() {
    return this.#native.id;
  }

  get name() {
    return this.#native.name ?? undefined;
  }

  async startSession(options) {
    const session = await this.#native.startSession(optionsJson(options, 'startSession'));
    return new Session(session, this.#output);
  }

  async resumeSession(reference) {
    if (typeof reference !== 'string' || reference === '') {
      throw new InvalidConfigError(
        'resumeSession: give a conversation id, or the text of getState()',
      );
    }
    return new Session(await this.#native.resumeSession(reference), this.#output);
  }

  async prompt(input, options) {
    const { signal, ...rest } = options ? ownFields(options, 'prompt options') : {};
    checkSignal(signal);
    const { stopper, release } = stopperFor(signal);
    try {
      return JSON.parse(
        await this.#native.prompt(inputJson(input), optionsJson(rest, 'prompt'), stopper),
      );
    } finally {
      release();
    }
  }

  async close(options) {
    const deadline = options?.deadlineMs;
    if (
      deadline !== undefined &&
      !(Number.isInteger(deadline) && deadline >= 0 && deadline < 2 ** 32)
    ) {
      throw new InvalidConfigError('close: deadlineMs must be a whole number of milliseconds');
    }
    await this.#native.close(deadline);
  }
}

/**
 * Creates an agent.
 *
 * @param {object} config
 * @returns {Agent}
 */
export function createAgent(config) {
  if (typeof config !== 'object' || config === null || Array.isArray(config)) {
    throw new InvalidConfigError('createAgent: the configuration must be an object');
  }
  const callbacks = new Callbacks();
  const fields = ownFields(config, 'config');
  fields.tools = prepareTools(fields.tools);
  fields.hooks = prepareHooks(fields.hooks);
  fields.logger = prepareLogger(fields.logger);
  fields.telemetry = prepareTelemetry(fields.telemetry);
  const text = toPlainJson(fields, 'config', (callback) => callbacks.register(callback));
  const agent = native.createAgent(text, environment(), callbacks.dispatch);
  warn(agent);
  const revive = fields.streamFormat === 'events' ? reviveEvent : undefined;
  return new Agent(agent, { revive, adapter: fields.streamAdapter ?? undefined });
}

/** In the format `'events'` an error is an object. */
function reviveEvent(event) {
  return event.type === 'error' ? { type: 'error', error: errorFromCore(event.error) } : event;
}

function environment() {
  const names = native.environmentVariables();
  const pairs = names.map((name) => [name, process.env[name]]);
  return Object.fromEntries(pairs.filter(([, value]) => value !== undefined));
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

function optionsJson(options, call) {
  return toPlainJson(options ?? null, `${call} options`, () => 0);
}

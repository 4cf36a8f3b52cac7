/**
 * The session that users hold.
 *
 * @module
 */
import { randomUUID } from 'node:crypto';

import { AdaptedStream } from './adapter.js';
import { InvalidConfigError, traced, typed } from './errors.js';
import { toJson } from './json.js';
import { refuseUnbuilt } from './not-built.js';
import { withCursor } from './page.js';
import { ownFields, toPlainJson } from './plain.js';
import { RunStream, reasonText, stopperFor } from './stream.js';

/** One conversation of one user. */
export class Session {
  #native;
  #output;

  /**
   * @param {object} native
   * @param {{ revive: (batch: unknown[]) => object[], adapter?: object }} output how elements are made
   */
  constructor(native, output) {
    this.#native = native;
    this.#output = output;
  }

  get id() {
    return this.#native.id;
  }

  get userId() {
    return this.#native.userId;
  }

  send(input, options) {
    return this.#stream('send', options, (text, stopper) =>
      this.#native.run(inputJson(input), text, stopper),
    );
  }

  respondToolUse(answer, options) {
    return this.#respond('respondToolUse', answer, options);
  }

  respondAskUser(answer, options) {
    return this.#respond('respondAskUser', answer, options);
  }

  #respond(method, answer, options) {
    return this.#stream(method, options, (text, stopper) =>
      this.#native.respond(method, inputJson(answer, method), text, stopper),
    );
  }

  /**
   * A stream whose run is started at its first `next()`.
   *
   * @param {string} method name of the call in messages
   * @param {unknown} options
   * @param {(options: string, stopper: object) => Promise<object>} start
   */
  #stream(method, options, start) {
    const { revive, adapter } = this.#output;
    const path = `${method} options`;
    const open = () => {
      const { signal, throwOnError, ...rest } = callOptions(options, path);
      checkFlag(throwOnError, `${path}.throwOnError`);
      const text = optionsJson(rest, path);
      const { stopper, release } = stopperFor(signal);
      try {
        return { run: start(text, stopper), release, throwOnError };
      } catch (error) {
        release();
        throw error;
      }
    };
    const stream = new RunStream(open, revive);
    return adapter ? new AdaptedStream(stream, adapter, this.#context()) : stream;
  }

  /** What a custom adapter is told about a run. */
  #context() {
    const { id, userId } = this;
    return { conversationId: id, sessionId: id, userId, turnId: randomUUID() };
  }

  async prompt(input, options) {
    const { signal, ...rest } = callOptions(options, 'prompt options');
    const texts = [inputJson(input), optionsJson(rest, 'prompt options')];
    const { stopper, release } = stopperFor(signal);
    try {
      return JSON.parse(await traced(this.#native.prompt(...texts, stopper)));
    } finally {
      release();
    }
  }

  async abort(reason) {
    await this.#native.abort(reasonText(reason));
  }

  async close() {
    await traced(this.#native.close());
  }

  async getHistory(options) {
    const text = optionsJson(options, 'getHistory options');
    const { records, nextCursor } = JSON.parse(await traced(this.#native.history(text)));
    return withCursor(records, nextCursor);
  }

  async clearHistory() {
    await traced(this.#native.clearHistory());
  }

  async flush() {
    await traced(this.#native.flush());
  }

  async settled() {
    await this.#native.settled();
  }

  async getState() {
    return this.#native.state;
  }
}

refuseUnbuilt(Session, {
  promises: ['snapshotWorkspace', 'restoreWorkspace', 'getRestoreStatus'],
  streams: ['respondApproval'],
});

/** What may be no JSON in the argument of a method. */
const WRITTEN = { send: 'the input', respondToolUse: 'output', respondAskUser: 'answer' };

/** Reads what was passed to `send`, or to another method; it may be anything. */
export function inputJson(input, method = 'send') {
  try {
    return toJson(input);
  } catch (error) {
    throw new InvalidConfigError(`${method}: ${WRITTEN[method]} cannot be written as JSON`, error);
  }
}

/** Reads the options of a call, which may be anything; `signal` stays as it is. */
export function callOptions(options, path) {
  if (options === undefined || options === null) return {};
  return typed(path, () => {
    if (typeof options !== 'object') throw new InvalidConfigError(`${path} must be an object`);
    const fields = ownFields(options, path);
    checkSignal(fields.signal, path);
    return fields;
  });
}

/** Options as JSON text, for the core to check. */
export function optionsJson(options, path) {
  return typed(path, () => toPlainJson(options ?? null, path, () => 0));
}

/** A signal of another realm is as good: what counts is what it can do. */
function checkSignal(signal, path) {
  if (signal === undefined || signal === null) return;
  if (typeof signal.addEventListener !== 'function' || typeof signal.aborted !== 'boolean') {
    throw new InvalidConfigError(`${path}.signal must be an AbortSignal`);
  }
}

function checkFlag(value, path) {
  if (value !== undefined && typeof value !== 'boolean') {
    throw new InvalidConfigError(`${path} must be true or false`);
  }
}

/**
 * Streams through a custom `streamAdapter`: the run is read as messages of the Claude Agent SDK, the
 * adapter makes the elements.
 *
 * @module
 */
import { DONE, OrderedGenerator, close, pull } from './generator.js';
import { describeThrown } from './thrown.js';

/** The elements of an adapter, as an async generator. */
export class AdaptedStream extends OrderedGenerator {
  #source;
  #adapter;
  #context;
  #elements;
  #tail = [];
  #ended = false;

  /**
   * @param {AsyncGenerator<object>} source messages of the run; starts at the first `next()`
   * @param {{ adapt(messages: AsyncIterable<object>, context: object): AsyncIterable<unknown> }} adapter
   * @param {object} context what the adapter is told about the run
   */
  constructor(source, adapter, context) {
    super();
    this.#source = source;
    this.#adapter = adapter;
    this.#context = context;
  }

  async [pull]() {
    if (this.#tail.length > 0) return { value: this.#tail.shift(), done: false };
    if (this.#ended) return DONE;
    try {
      // Misuse of the session rejects, and not as a fault of the adapter.
      this.#elements ??= await this.#adapt();
      const { value, done } = await this.#elements.next();
      if (!done) return { value, done: false };
      await this[close]();
      return DONE;
    } catch (error) {
      return this.#fail(error);
    }
  }

  async [close]() {
    if (this.#ended) return;
    this.#ended = true;
    await this.#source.return();
    // An adapter that never settles must not hold the consumer.
    Promise.resolve(this.#elements?.return?.()).catch(() => {});
  }

  async #adapt() {
    const first = await this.#first();
    const messages = withFirst(first, this.#source);
    return this.#adapter.adapt(messages, this.#context)[Symbol.asyncIterator]();
  }

  async #first() {
    try {
      return await this.#source.next();
    } catch (error) {
      this.#ended = true;
      throw new Misuse(error);
    }
  }

  /** What an adapter throws becomes the standard end of a failed run. */
  async #fail(error) {
    if (error instanceof Misuse) throw error.cause;
    await this[close]();
    const { name, message } = describeThrown(error);
    const timestamp = Date.now();
    this.#tail = [{ sessionUpdate: 'agent_phase', phase: 'idle', timestamp, stopReason: 'error' }];
    return {
      value: {
        sessionUpdate: 'log',
        level: 'error',
        message: `the stream adapter failed: ${message || name}`,
        timestamp,
        code: 'E_ADAPTER',
        name: name || 'Error',
        retryable: false,
      },
      done: false,
    };
  }
}

/** Carries a rejection of the session past the handling of adapter faults. */
class Misuse extends Error {
  constructor(cause) {
    super('', { cause });
  }
}

async function* withFirst(first, rest) {
  if (first.done) return;
  yield first.value;
  yield* rest;
}

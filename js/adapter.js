/**
 * Streams through a custom `streamAdapter`: the run is read as messages of the Claude Agent SDK, the
 * adapter makes the elements.
 *
 * @module
 */
import { KernelError } from './errors.js';
import { DONE, OrderedGenerator, close, pull } from './generator.js';
import { describeThrown } from './thrown.js';

/** Milliseconds that an adapter has to end after its run was stopped. */
const PATIENCE_MS = 50;
/** What an adapter is not waited for any longer with. */
const STOPPED = Symbol('stopped');

/** The elements of an adapter, as an async generator. */
export class AdaptedStream extends OrderedGenerator {
  #source;
  #adapter;
  #context;
  #elements;
  /** What comes after the last element: further elements, then an error to reject with. */
  #tail = [];
  #failure;
  #ended = false;
  #stopped = false;
  #wake = () => {};

  /**
   * @param {import('./stream.js').RunStream} source messages of the run; starts at the first `next()`
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
    if (this.#ended) return this.#rest();
    // Misuse of the session rejects, and is no fault of the adapter.
    const first = this.#elements ? undefined : await this.#begin();
    try {
      this.#elements ??= this.#adapt(first);
      const result = await this.#next();
      if (result === STOPPED) return await this.#giveUp();
      if (!result.done) return { value: result.value, done: false };
      await this[close]();
    } catch (error) {
      await this.#fail(error);
    }
    return this.#rest();
  }

  async [close]() {
    if (this.#ended) return;
    this.#ended = true;
    this.#wake(DONE);
    await this.#source.return();
    // An adapter that never settles, or throws once more, must not hold the consumer.
    Promise.resolve()
      .then(() => this.#elements?.return?.())
      .catch(() => {});
  }

  #rest() {
    if (this.#tail.length > 0) return { value: this.#tail.shift(), done: false };
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure) throw failure;
    return DONE;
  }

  async #begin() {
    try {
      const first = await this.#source.next();
      this.#source.whenStopped(() => setTimeout(() => this.#stop(), PATIENCE_MS));
      return first;
    } catch (error) {
      this.#ended = true;
      throw error;
    }
  }

  #adapt(first) {
    const elements = this.#adapter.adapt(this.#messages(first), this.#context);
    if (typeof elements?.[Symbol.asyncIterator] !== 'function') {
      throw new TypeError('adapt() must give an async iterable');
    }
    return elements[Symbol.asyncIterator]();
  }

  /** The messages of the run. Its error is the consumer's, not the adapter's. */
  async *#messages(first) {
    try {
      for (let result = first; !result.done; result = await this.#source.next()) {
        yield result.value;
      }
    } catch (error) {
      this.#failure = error;
    }
  }

  /** What the adapter gives next, unless the run was stopped and the adapter does not notice. */
  #next() {
    if (this.#stopped) return STOPPED;
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      Promise.resolve(this.#elements.next()).then(resolve, reject);
    });
  }

  #stop() {
    this.#stopped = true;
    this.#wake(STOPPED);
  }

  async #giveUp() {
    await this[close]();
    this.#tail.push(idle('aborted'));
    return this.#rest();
  }

  /** What an adapter throws becomes the standard end of a failed run. */
  async #fail(error) {
    await this[close]();
    const { name, message } = describeThrown(error);
    const fault = new KernelError(
      'E_ADAPTER',
      `the stream adapter failed: ${message || name || 'it threw nothing'}`,
      error,
    );
    const { code, retryable } = fault;
    const log = { level: 'error', message: fault.message, timestamp: Date.now() };
    this.#tail.push(
      { sessionUpdate: 'log', ...log, code, name: fault.name, retryable },
      idle('error'),
    );
    this.#failure = this.#source.throwsOnError ? fault : undefined;
  }
}

function idle(stopReason) {
  return { sessionUpdate: 'agent_phase', phase: 'idle', timestamp: Date.now(), stopReason };
}

/**
 * The shape of an async generator over a source that can be closed at any time.
 *
 * `next()` calls are answered in order. `return()` and `throw()` do not queue behind them: they close
 * the source at once and resolve when that is done. A subclass says how to get an element and how to
 * close.
 *
 * @module
 */

/** Name of the method that gets the next iterator result. */
export const pull = Symbol('pull');
/** Name of the method that gives a result that is ready, if any. */
export const ready = Symbol('ready');
/** Name of the method that closes the source. */
export const close = Symbol('close');

/** What `next()` gives after the end. */
export const DONE = Object.freeze({ value: undefined, done: true });

/** An async generator whose elements a subclass makes. */
export class OrderedGenerator {
  #last = Promise.resolve();
  /** `next()` calls that wait: a later one must not overtake them. */
  #waiting = 0;

  next() {
    const result = this.#waiting === 0 ? this[ready]?.() : undefined;
    return result ? Promise.resolve(result) : this.#queue();
  }

  #queue() {
    this.#waiting += 1;
    const result = this.#last.then(() => this[pull]());
    // The caller has the rejection; the chain only keeps the order.
    this.#last = result.catch(() => {}).finally(() => (this.#waiting -= 1));
    return result;
  }

  async return(value) {
    await this[close]();
    return { value: await value, done: true };
  }

  async throw(error) {
    await this[close]();
    throw error;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  async [Symbol.asyncDispose]() {
    await this[close]();
  }

  get [Symbol.toStringTag]() {
    return 'AsyncGenerator';
  }
}

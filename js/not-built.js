/**
 * Methods of the documented interface that do not exist yet.
 *
 * @module
 */
import { NotImplementedError } from './errors.js';
import { OrderedGenerator, close, pull } from './generator.js';

/**
 * Adds methods that reject with a `NotImplementedError` naming them: those that give a promise at once,
 * those that give a stream at its first `next()`.
 *
 * @param {Function} owner class
 * @param {{ promises: string[], streams: string[] }} names
 */
export function refuseUnbuilt(owner, { promises, streams }) {
  const refuse = (name) => {
    throw new NotImplementedError(`${owner.name}.${name}()`);
  };
  const add = (name, value) =>
    Object.defineProperty(owner.prototype, name, { value, configurable: true });
  for (const name of promises) add(name, async () => refuse(name));
  for (const name of streams) add(name, () => new Unbuilt(() => refuse(name)));
}

/** A stream that has nothing to give. */
class Unbuilt extends OrderedGenerator {
  #refuse;

  constructor(refuse) {
    super();
    this.#refuse = refuse;
  }

  async [pull]() {
    this.#refuse();
  }

  async [close]() {}
}

/**
 * Methods of the documented interface that do not exist yet.
 *
 * @module
 */
import { NotImplementedError } from './errors.js';

/**
 * Adds methods that reject with a `NotImplementedError` naming them.
 *
 * @param {Function} owner class
 * @param {string[]} names
 */
export function refuseUnbuilt(owner, names) {
  for (const name of names) {
    const method = async () => {
      throw new NotImplementedError(`${owner.name}.${name}()`);
    };
    Object.defineProperty(owner.prototype, name, { value: method, configurable: true });
  }
}

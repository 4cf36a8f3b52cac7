/**
 * Prepares `config.toolStore` for the core.
 *
 * @module
 */
import { ownMethods } from './session-store/driver.js';

const METHODS = ['put', 'get', 'delete'];

/**
 * @param {unknown} store an object with put, get and delete; an instance of a class keeps its `this`
 * @returns {unknown} the functions it has; anything of a wrong shape is left for the core to refuse
 */
export function prepareToolStore(store) {
  if (typeof store !== 'object' || store === null || Array.isArray(store)) return store;
  const { put, get, delete: remove } = ownMethods(store, METHODS, 'config.toolStore');
  return { put: silent(put), get, delete: silent(remove) };
}

/** What a method gives that is called for its effect is nobody's business. */
function silent(method) {
  return (
    method &&
    (async (argument) => {
      await method(argument);
    })
  );
}

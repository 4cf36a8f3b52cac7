/**
 * Which objects are stores of the kernel: it calls their drivers directly, not through JavaScript.
 *
 * @module
 */
const branded = new WeakMap();

/**
 * @template {object} T
 * @param {T} store
 * @param {object} native the driver in the core
 * @returns {T} the store
 */
export function brand(store, native) {
  branded.set(store, native);
  return store;
}

/**
 * @param {unknown} value
 * @returns {object | undefined} the driver in the core; nothing when the value is no store of ours
 */
export function nativeStoreOf(value) {
  return branded.get(value);
}

/**
 * What is wrong with a schema, and where in it.
 *
 * @module
 */

/** Thrown by readers of schemas, which know neither the tool nor where the schema stands. */
export class SchemaFault extends Error {
  /**
   * @param {string} place inside the schema, such as `.city`; empty: the schema itself
   * @param {string} what a predicate: "is a function"
   * @param {unknown} [cause]
   */
  constructor(place, what, cause) {
    super(`${place || 'the schema'} ${what}`, { cause });
    this.place = place;
    this.what = what;
  }
}

/**
 * The step of a place that leads to a property.
 *
 * @param {string} key
 */
export function step(key) {
  return /^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
}

/** The words of an error that some library threw. */
export function wordsOf(error) {
  const words = error instanceof Error ? error.message : error;
  return typeof words === 'string' && words ? words : 'its library failed';
}

/**
 * Reads a property, whose getter may throw.
 *
 * @param {object} object
 * @param {string} key
 * @param {string} place of the object
 */
export function readField(object, key, place) {
  try {
    return object[key];
  } catch (error) {
    throw new SchemaFault(place + step(key), `cannot be read: ${wordsOf(error)}`, error);
  }
}

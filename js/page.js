/**
 * Pages of lists.
 *
 * @module
 */

/**
 * An array with the cursor of the next page.
 *
 * @template T
 * @param {T[]} items
 * @param {string | null} nextCursor
 * @returns {T[] & { nextCursor: string | null }}
 */
export function withCursor(items, nextCursor) {
  // Not enumerable: to those who print or compare it, it is an array.
  return Object.defineProperty(items, 'nextCursor', { value: nextCursor });
}

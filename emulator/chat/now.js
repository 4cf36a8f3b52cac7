/** @returns {number} seconds since 1970 */
export function now() {
  return Math.floor(Date.now() / 1000);
}

/**
 * Random numbers that a seed repeats.
 *
 * @module
 */

/**
 * @param {number} seed
 * @returns {{ below(limit: number): number, shuffled<T>(list: T[]): T[] }}
 */
export function seeded(seed) {
  let state = seed >>> 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit) => Math.floor(next() * limit);
  return {
    below,
    shuffled(list) {
      const mixed = [...list];
      for (let at = mixed.length - 1; at > 0; at -= 1) {
        const other = below(at + 1);
        [mixed[at], mixed[other]] = [mixed[other], mixed[at]];
      }
      return mixed;
    },
  };
}

/**
 * Remembers what callbacks threw, so that an error of the kernel can carry it as its `cause`.
 *
 * @module
 */

/** How many are kept: most are told to the model and never asked for again. */
const KEPT = 64;

const kept = new Map();
let next = 0;

/** @returns {number} the number under which the value is kept */
export function keepThrown(value) {
  const number = next++;
  kept.set(number, { value });
  if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  return number;
}

/** @returns {{ value: unknown } | undefined} what was kept under a number */
export function thrownUnder(number) {
  return kept.get(number);
}

/** A thrown value in words; values may lie, and reading them may throw. */
export function describeThrown(value) {
  try {
    if (value instanceof Error) {
      return { name: String(value.name), message: String(value.message) };
    }
    if (value === undefined || value === null) return { name: '', message: '' };
    // Some libraries throw plain objects: what they say is worth more than their kind.
    const { name, message } = Object(value);
    const said = typeof message === 'string' ? message : String(value);
    return { name: typeof name === 'string' ? name : '', message: said };
  } catch {
    return { name: '', message: 'a value was thrown that cannot be read' };
  }
}

/**
 * Parses JSON text.
 *
 * @param {string} text
 * @param {unknown} fallback what stands for text that is no JSON
 * @returns {any}
 */
export function parseOr(text, fallback) {
  try {
    return JSON.parse(text);
  } catch {
    return fallback;
  }
}

/**
 * Runs a table of rules. A rule takes the request (and what the model remembers of its own answers)
 * and returns what is wrong and where, or `null`. Later rules rely on the shape that earlier ones
 * have checked.
 *
 * @param {Record<string, (request: any, memory?: import('../model/memory.js').ModelMemory) => string | null>} rules
 * @param {unknown} body decoded JSON
 * @param {import('../model/memory.js').ModelMemory} [memory]
 * @returns {{ rule: string, message: string } | null} the first broken rule
 */
export function firstBroken(rules, body, memory) {
  for (const [rule, check] of Object.entries(rules)) {
    const message = check(body, memory);
    if (message) return { rule, message };
  }
  return null;
}

/**
 * Finds an offered tool by its plain name. Tools of an MCP server are offered as
 * `mcp__<server>__<tool>`.
 *
 * @param {string[]} offered
 * @param {string} name full or plain name
 * @returns {string | undefined} full name
 */
export function findTool(offered, name) {
  return (
    offered.find((candidate) => candidate === name) ??
    offered.find((candidate) => candidate.endsWith(`__${name}`))
  );
}

/**
 * The plain name of a tool.
 *
 * @param {string} name
 * @returns {string}
 */
export function plainName(name) {
  return name.startsWith('mcp__') ? name.split('__').slice(2).join('__') : name;
}

/**
 * Reads `call <tool> {json}` (the JSON may be missing).
 *
 * @param {string} userText
 * @returns {{ name: string, input: object } | null} `null` when it is no such order
 */
export function readCallOrder(userText) {
  const match = /(?:^|\s)(?:call|调用)\s+([a-zA-Z0-9_-]+)\s*(\{.*\})?/su.exec(userText);
  if (!match) return null;
  try {
    return { name: match[1], input: match[2] ? JSON.parse(match[2]) : {} };
  } catch {
    return null;
  }
}

/**
 * Summaries of sessions, folded from their entries as they are appended.
 *
 * Source of the fields: the session summaries of the Claude Agent SDK.
 *
 * @module
 */

/** Longest first prompt that is kept, in characters. */
const PROMPT_CHARS = 200;
/** Fields where the last value counts, with the type of entry they come from. */
const LAST_WINS = {
  customTitle: 'custom-title',
  aiTitle: 'ai-title',
  lastPrompt: 'last-prompt',
  summaryHint: 'summary',
  tag: 'tag',
};

/**
 * Takes appended entries of a main transcript into its summary.
 *
 * @param {{ sessionId: string, mtime: number, data: object } | undefined} previous
 * @param {{ sessionId: string }} key
 * @param {object[]} entries
 * @param {{ mtime?: number }} [options] `mtime` in milliseconds; without it the previous one stays
 * @returns {{ sessionId: string, mtime: number, data: object }}
 */
export function foldSessionSummary(previous, key, entries, { mtime } = {}) {
  const data = { ...previous?.data };
  for (const entry of entries) fold(data, entry);
  return { sessionId: key.sessionId, mtime: mtime ?? previous?.mtime ?? 0, data };
}

function fold(data, entry) {
  const created = Date.parse(entry.timestamp);
  once(data, 'createdAt', Number.isNaN(created) ? undefined : created);
  once(data, 'isSidechain', entry.isSidechain);
  once(data, 'cwd', entry.cwd);
  if (data.firstPromptLocked !== true) once(data, 'firstPrompt', firstPrompt(entry));
  if (data.firstPrompt !== undefined) data.firstPromptLocked = true;
  if (entry.gitBranch !== undefined) data.gitBranch = entry.gitBranch;
  for (const [field, type] of Object.entries(LAST_WINS)) {
    if (entry.type === type && entry[field] !== undefined) data[field] = entry[field];
  }
}

function once(data, field, value) {
  if (value !== undefined && data[field] === undefined) data[field] = value;
}

/** The text of a prompt of the user, cut. */
function firstPrompt({ type, isMeta, message }) {
  if (type !== 'user' || isMeta === true) return undefined;
  const content = message?.content;
  const text = Array.isArray(content) ? texts(content).join('\n') : content;
  if (typeof text !== 'string' || text.trim() === '') return undefined;
  return [...text].slice(0, PROMPT_CHARS).join('');
}

function texts(blocks) {
  const isText = (block) => block?.type === 'text' && typeof block.text === 'string';
  return blocks.filter(isText).map(({ text }) => text);
}

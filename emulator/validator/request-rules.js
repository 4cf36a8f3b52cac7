import { isObject } from './walk.js';

/** Rules about the request as a whole; everything after them relies on its shape. */
export const requestRules = {
  'body-object': (request) => (isObject(request) ? null : 'the body must be a JSON object'),
  'lone-surrogate': (request) => findLoneSurrogate(request, ''),
  model: ({ model }) =>
    typeof model === 'string' && model !== '' ? null : 'model must be a non-empty string',
  'max-tokens': ({ max_tokens: limit }) =>
    Number.isInteger(limit) && limit > 0 ? null : 'max_tokens must be a positive integer',
  stream: ({ stream }) =>
    stream === undefined || typeof stream === 'boolean' ? null : 'stream must be a boolean',
  'system-shape': systemShape,
};

function findLoneSurrogate(value, path) {
  if (typeof value === 'string') {
    return value.isWellFormed() ? null : `lone surrogate in ${path || 'the body'}`;
  }
  if (value === null || typeof value !== 'object') return null;
  for (const [key, item] of Object.entries(value)) {
    if (!key.isWellFormed()) return `lone surrogate in a key of ${path || 'the body'}`;
    const found = findLoneSurrogate(item, path === '' ? key : `${path}.${key}`);
    if (found) return found;
  }
  return null;
}

function systemShape({ system }) {
  if (system === undefined || typeof system === 'string') return null;
  if (!Array.isArray(system)) return 'system must be a string or a list of text blocks';
  const bad = system.findIndex((block) => block?.type !== 'text' || typeof block.text !== 'string');
  return bad < 0 ? null : `system.${bad} must be a text block`;
}

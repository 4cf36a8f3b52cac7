import { allBlocks } from './walk.js';

const MOST_MARKS = 4;

/** Rules about prompt cache marks. */
export const cacheRules = {
  'cache-marks': cacheMarks,
  'cache-mark-place': cacheMarkPlace,
};

function* marked(request) {
  for (const [index, tool] of (request.tools ?? []).entries()) {
    if (tool.cache_control) yield { block: tool, path: `tools.${index}` };
  }
  for (const entry of allBlocks(request)) {
    if (entry.block.cache_control) yield entry;
  }
}

function cacheMarks(request) {
  const paths = [...marked(request)].map(({ path }) => path);
  if (paths.length <= MOST_MARKS) return null;
  return `${paths.length} cache_control marks, at most ${MOST_MARKS} allowed: ${paths.join(', ')}`;
}

function cacheMarkPlace(request) {
  for (const { block, path } of marked(request)) {
    if (block.cache_control.type !== 'ephemeral') {
      return `${path}.cache_control.type must be "ephemeral"`;
    }
    if (block.type === 'thinking' || block.type === 'redacted_thinking') {
      return `${path}: cache_control is not allowed on a ${block.type} block`;
    }
  }
  return null;
}

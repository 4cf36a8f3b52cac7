import { declarationRules } from '../tool-rules.js';
import { isObject } from '../walk.js';

/** Rules about the tools that a request offers. */
export const chatToolRules = {
  'tools-shape': toolsShape,
  ...declarationRules({
    declared: (tool) => tool.function,
    path: '.function',
    schema: 'parameters',
    needsSchema: () => true,
  }),
};

function toolsShape({ tools }) {
  if (tools === undefined) return null;
  if (!Array.isArray(tools) || tools.length === 0) {
    return 'tools must be a non-empty list (or left out)';
  }
  for (const [index, tool] of tools.entries()) {
    if (tool?.type !== 'function') return `tools.${index}.type must be "function"`;
    if (!isObject(tool.function)) return `tools.${index}.function must be an object`;
  }
  return null;
}

import { isObject } from './walk.js';

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Rules about the tools that a request offers. */
export const toolRules = {
  'tools-shape': ({ tools }) =>
    tools === undefined || (Array.isArray(tools) && tools.every(isObject))
      ? null
      : 'tools must be a list of objects',
  'tool-name': toolName,
  'tool-names-unique': toolNamesUnique,
  'tool-schema': toolSchema,
};

function toolName({ tools = [] }) {
  const bad = tools.findIndex(({ name }) => typeof name !== 'string' || !TOOL_NAME.test(name));
  if (bad < 0) return null;
  return `tools.${bad}.name ${JSON.stringify(tools[bad].name)} must match ${TOOL_NAME.source}`;
}

function toolNamesUnique({ tools = [] }) {
  const names = tools.map(({ name }) => name);
  const bad = names.findIndex((name, index) => names.indexOf(name) < index);
  return bad < 0 ? null : `tools.${bad}.name "${names[bad]}" is used twice`;
}

function toolSchema({ tools = [] }) {
  for (const [index, tool] of tools.entries()) {
    // Tools that run at the provider have a versioned type and no schema.
    if (tool.type !== undefined && tool.type !== 'custom') continue;
    if (tool.input_schema?.type !== 'object') {
      return `tools.${index}.input_schema.type must be "object"`;
    }
  }
  return null;
}

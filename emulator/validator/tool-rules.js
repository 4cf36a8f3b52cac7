import { isObject } from './walk.js';

const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * The rules about declared tools, the same in every protocol.
 *
 * @param {object} form where a protocol puts things
 * @param {(tool: object) => object} form.declared the part of a tool that has its name
 * @param {string} form.path of that part below the tool, e.g. `.function`
 * @param {string} form.schema name of the field with the schema
 * @param {(tool: object) => boolean} form.needsSchema
 * @returns {Record<string, (request: object) => string | null>}
 */
export function declarationRules({ declared, path, schema, needsSchema }) {
  const names = ({ tools = [] }) => tools.map((tool) => declared(tool).name);
  return {
    'tool-name': (request) => {
      const all = names(request);
      const bad = all.findIndex((name) => typeof name !== 'string' || !TOOL_NAME.test(name));
      if (bad < 0) return null;
      return `tools.${bad}${path}.name ${JSON.stringify(all[bad])} must match ${TOOL_NAME.source}`;
    },
    'tool-names-unique': (request) => {
      const all = names(request);
      const bad = all.findIndex((name, index) => all.indexOf(name) < index);
      return bad < 0 ? null : `tools.${bad}${path}.name "${all[bad]}" is used twice`;
    },
    'tool-schema': ({ tools = [] }) => {
      const bad = tools.findIndex(
        (tool) => needsSchema(tool) && declared(tool)[schema]?.type !== 'object',
      );
      return bad < 0 ? null : `tools.${bad}${path}.${schema}.type must be "object"`;
    },
  };
}

/** Rules about the tools that a request offers. */
export const toolRules = {
  'tools-shape': ({ tools }) =>
    tools === undefined || (Array.isArray(tools) && tools.every(isObject))
      ? null
      : 'tools must be a list of objects',
  ...declarationRules({
    declared: (tool) => tool,
    path: '',
    schema: 'input_schema',
    // Tools that run at the provider have a versioned type and no schema.
    needsSchema: ({ type }) => type === undefined || type === 'custom',
  }),
};

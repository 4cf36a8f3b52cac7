/**
 * Prepares `config.tools` for the core.
 *
 * @module
 */
import { ownFields, read } from './plain.js';
import { readParameters } from './schema.js';

/** Fields that may live on the class of a tool object. */
const FIELDS = ['name', 'description', 'parameters', 'execute'];

/**
 * @param {unknown} tools
 * @returns {unknown} the same list with JSON Schemas and functions that take one argument; anything
 *   of a wrong shape is left for the core to refuse
 */
export function prepareTools(tools) {
  if (!Array.isArray(tools)) return tools;
  return tools.map((tool, at) => prepareTool(tool, `config.tools[${at}]`));
}

function prepareTool(tool, path) {
  if (typeof tool !== 'object' || tool === null || Array.isArray(tool)) return tool;
  const fields = ownFields(tool, path);
  for (const key of FIELDS) fields[key] ??= read(tool, key, path);
  const { schema, check } = readParameters(fields.parameters, `${path}.parameters`);
  fields.parameters = schema;
  if (typeof fields.execute === 'function') {
    fields.execute = callable(tool, fields.execute, String(fields.name), check);
  }
  // The core must not check twice, and not before defaults and coercions are applied.
  fields.checksInput = check !== undefined;
  return fields;
}

function callable(tool, execute, name, check) {
  return async ({ input, context }, signal) => {
    const checked = check ? await check(input) : { value: input };
    if (checked.faults) throw new Error(unfit(name, checked.faults));
    return execute.call(tool, checked.value, { ...context, signal });
  };
}

/** The words of the core for the same fault. */
function unfit(name, faults) {
  const text = faults.join('\n');
  return `<tool_use_error>InputValidationError: the input of ${name} does not fit its schema:\n${text}</tool_use_error>`;
}

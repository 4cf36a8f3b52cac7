/**
 * Tool parameters: from what users write to JSON Schema and a check of inputs.
 *
 * @module
 */
import { createRequire } from 'node:module';

import { InvalidConfigError } from './errors.js';
import { ownFields } from './plain.js';

const require = createRequire(import.meta.url);

/**
 * @typedef {object} Parameters
 * @property {unknown} schema JSON Schema for the model
 * @property {((input: unknown) => Promise<{ value: unknown } | { faults: string[] }>)} [check]
 *   checks an input and gives the parsed value; absent: the core checks against the schema
 */

/**
 * @param {unknown} parameters a zod 4 schema or a JSON Schema
 * @param {string} path
 * @returns {Parameters}
 */
export function readParameters(parameters, path) {
  if (!isZod4(parameters)) return { schema: parameters };
  return {
    schema: zodToJsonSchema(parameters, path),
    check: (input) => checkWithZod(parameters, input),
  };
}

function isZod4(value) {
  return typeof value === 'object' && value !== null && '_zod' in value && '~standard' in value;
}

/** The schema itself knows how since zod 4.2; before, the function of the package does. */
function zodToJsonSchema(schema, path) {
  const options = { io: 'input', target: 'draft-7' };
  try {
    const converted =
      typeof schema.toJSONSchema === 'function'
        ? schema.toJSONSchema(options)
        : require('zod/v4/core').toJSONSchema(schema, options);
    // The converter hangs the schema's check on the result, under a symbol-like key.
    return ownFields(converted, path);
  } catch (error) {
    throw new InvalidConfigError(
      `${path} cannot be written as a JSON Schema: ${error?.message ?? error}`,
      error,
    );
  }
}

async function checkWithZod(schema, input) {
  const result = await schema['~standard'].validate(input);
  if (!result.issues) return { value: result.value };
  return {
    faults: result.issues.map(({ path, message }) => {
      const place = (path ?? []).map((step) => String(step?.key ?? step)).join('/');
      return `- ${place || 'input'}: ${message}`;
    }),
  };
}

/**
 * Schemas and raw shapes of zod 3, which cannot write JSON Schema itself.
 *
 * @module
 */
import { outcomeOf } from './issues.js';
import { Zod3Converter } from './zod3-convert.js';

export function isZod3(value) {
  return (
    typeof value._def?.typeName === 'string' &&
    value._def.typeName.startsWith('Zod') &&
    typeof value.safeParseAsync === 'function'
  );
}

/**
 * @param {object} schema
 * @returns {import('../schema.js').Parameters}
 */
export function readZod3(schema) {
  return {
    schema: new Zod3Converter().root(schema),
    check: async (input) => outcomeOf(await schema.safeParseAsync(input)),
  };
}

/**
 * @param {Record<string, object>} shape
 * @returns {import('../schema.js').Parameters}
 */
export function readZod3Shape(shape) {
  const fields = Object.entries(shape);
  return {
    schema: new Zod3Converter().shape(shape),
    check: async (input) => checkShape(fields, input),
  };
}

/** As an object schema of zod does, which no type of zod 3 leads to. */
async function checkShape(fields, input) {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return outcomeOf({ success: false, error: { issues: [{ message: 'Expected object' }] } });
  }
  const values = [];
  const issues = [];
  for (const [key, schema] of fields) {
    const isGiven = Object.hasOwn(input, key);
    const { success, data, error } = await schema.safeParseAsync(isGiven ? input[key] : undefined);
    if (!success) {
      issues.push(...error.issues.map((issue) => ({ ...issue, path: [key, ...issue.path] })));
    } else if (isGiven || data !== undefined) {
      values.push([key, data]);
    }
  }
  return outcomeOf({
    success: issues.length === 0,
    data: Object.fromEntries(values),
    error: { issues },
  });
}

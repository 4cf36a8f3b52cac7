/**
 * The package of zod 4 for what schemas cannot do alone; this package has none of its own.
 *
 * @module
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { SchemaFault } from './fault.js';

/** Since then a schema of `import` and the package of `require` share descriptions. */
const SHARING = 2;

/**
 * Finds `zod/v4/core` beside this package, beside the program, or in the working directory. Its
 * version is that of the schema, or else later: an earlier one may not know all that the schema says.
 *
 * @param {object} schema
 * @param {string} help what to do without the package
 * @returns {Record<string, any>}
 */
export function coreOf(schema, help) {
  const { major, minor } = schema._zod.version ?? {};
  if (minor < SHARING && typeof schema.meta !== 'function') {
    throw new SchemaFault('', 'is of zod/mini before 4.2, whose descriptions are lost: update zod');
  }
  const places = [import.meta.url, process.argv[1], join(process.cwd(), 'x')];
  const cores = places.map(load).filter((core) => core?.version?.major === major);
  const core =
    cores.find(({ version }) => version.minor === minor) ??
    cores.find(({ version }) => version.minor > minor);
  if (core) return core;
  throw new SchemaFault('', `is of a zod ${major}.${minor} that is not installed here: ${help}`);
}

/**
 * Descriptions and other metadata; before zod 4.2 only the schema knows for sure.
 *
 * @param {Record<string, any>} core
 */
export function metadataFor(core) {
  return {
    get: (schema) =>
      (typeof schema.meta === 'function' ? schema.meta() : undefined) ??
      core.globalRegistry.get(schema),
  };
}

function load(place) {
  try {
    return createRequire(place)('zod/v4/core');
  } catch {
    return undefined;
  }
}

/**
 * `createSdkMcpServer` and `tool`, as the Claude Agent SDK has them.
 *
 * @module
 */
import { InvalidConfigError, typed } from '../errors.js';
import { ownFields } from '../plain.js';
import { readParameters } from '../schema.js';
import { isObject } from './json-rpc.js';
import { McpServer } from './server.js';

const PATH = 'createSdkMcpServer';
/** Version of a server that does not say it; clients want one. */
const VERSION = '1.0.0';
const NO_INPUT = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  type: 'object',
  properties: {},
};

/**
 * Describes a tool for `createSdkMcpServer`.
 *
 * @param {string} name
 * @param {string} description
 * @param {object} inputSchema raw shape of zod 3 or 4, or any other schema that tools may have
 * @param {(args: any, extra: object) => Promise<object>} handler
 * @param {{ annotations?: object, searchHint?: string, alwaysLoad?: boolean }} [extras]
 */
export function tool(name, description, inputSchema, handler, extras) {
  const { annotations, searchHint, alwaysLoad } = extras ?? {};
  const meta = {
    ...(searchHint && { 'anthropic/searchHint': searchHint }),
    ...(alwaysLoad && { 'anthropic/alwaysLoad': true }),
  };
  const _meta = Object.keys(meta).length > 0 ? meta : undefined;
  return { name, description, inputSchema, handler, annotations, _meta };
}

/**
 * Creates an MCP server in this process, for `config.mcpServers` or for any transport.
 *
 * @param {object} options
 * @returns {{ type: 'sdk', name: string, instance: McpServer, timeout?: number }}
 */
export function createSdkMcpServer(options) {
  return typed(`${PATH}: the options`, () => {
    const { name, version, instructions, tools, alwaysLoad, timeout } = fieldsOf(options, PATH);
    needText(name, `${PATH}: name`);
    if (version !== undefined) needText(version, `${PATH}: version`);
    if (instructions !== undefined && typeof instructions !== 'string') {
      throw new InvalidConfigError(`${PATH}: instructions must be a string`);
    }
    const info = { name, version: version ?? VERSION };
    const instance = new McpServer(info, instructions, readTools(tools, Boolean(alwaysLoad)));
    const limit = Number.isInteger(timeout) && timeout > 0 ? { timeout } : {};
    return { type: 'sdk', name, instance, ...limit };
  });
}

function readTools(tools, alwaysLoad) {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools)) throw new InvalidConfigError(`${PATH}: tools must be an array`);
  const read = new Map();
  for (const [at, tool] of tools.entries()) {
    const { name, ...rest } = readTool(tool, `${PATH}: tools[${at}]`, alwaysLoad);
    if (read.has(name)) {
      throw new InvalidConfigError(`${PATH}: tools[${at}].name "${name}" is taken by another tool`);
    }
    read.set(name, { name, ...rest });
  }
  return read;
}

function readTool(tool, path, alwaysLoad) {
  const fields = fieldsOf(tool, path);
  const { name, description, inputSchema, handler, annotations, _meta } = fields;
  needText(name, `${path}.name`);
  if (description !== undefined && typeof description !== 'string') {
    throw new InvalidConfigError(`${path}.description must be a string`);
  }
  if (typeof handler !== 'function') {
    throw new InvalidConfigError(`${path}.handler must be a function`);
  }
  const meta = alwaysLoad ? { 'anthropic/alwaysLoad': true, ..._meta } : _meta;
  const input = readInput(inputSchema, `${path}.inputSchema`, name);
  return { name, description, handler: handler.bind(tool), annotations, meta, ...input };
}

/** The schema for clients, and the check; of a plain JSON Schema the agent makes the check. */
function readInput(inputSchema, path, name) {
  if (inputSchema === undefined || inputSchema === null) return { schema: NO_INPUT };
  const { schema, check } = readParameters(inputSchema, path, name);
  if (!isObject(schema) || Array.isArray(schema)) {
    throw new InvalidConfigError(`${path} must be a raw shape of zod or a schema`);
  }
  if (Object.keys(schema).length === 0) return { schema: NO_INPUT };
  if ((schema.type ?? 'object') !== 'object') {
    throw new InvalidConfigError(`${path} must be of type object, which the input of a tool is`);
  }
  return { schema: { ...schema, type: 'object' }, check };
}

function fieldsOf(value, path) {
  if (!isObject(value) || Array.isArray(value)) {
    throw new InvalidConfigError(`${path} must be an object`);
  }
  return ownFields(value, path);
}

function needText(value, path) {
  if (typeof value === 'string' && value.trim() !== '') return;
  throw new InvalidConfigError(`${path} must be a non-empty string`);
}

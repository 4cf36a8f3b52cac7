/**
 * A small MCP server in the program: it offers tools.
 *
 * @module
 */
import { describeThrown } from '../thrown.js';
import { INVALID_PARAMS, METHOD_NOT_FOUND, isObject } from './json-rpc.js';
import { Peer, RpcError } from './peer.js';

/** Versions of the protocol, the one that we offer first. */
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07'];

/**
 * @typedef {object} ServerTool
 * @property {string} name
 * @property {string | undefined} description
 * @property {object} schema JSON Schema of the input
 * @property {((input: unknown) => Promise<{ value: unknown } | { faults: string[] }>)} [check]
 * @property {(args: unknown, extra: object) => unknown} handler
 * @property {object} [annotations]
 * @property {object} [meta]
 */

export class McpServer {
  #info;
  #instructions;
  #tools;
  #peer = new Peer((...request) => this.#handle(...request));

  /**
   * @param {{ name: string, version: string }} info
   * @param {string} [instructions]
   * @param {Map<string, ServerTool>} [tools] absent: the server has no tools at all
   */
  constructor(info, instructions, tools) {
    this.#info = info;
    this.#instructions = instructions;
    this.#tools = tools;
  }

  /**
   * Speaks over a transport of the MCP SDK's form, one at a time.
   *
   * @param {object} transport with `start`, `send` and `close`
   */
  async connect(transport) {
    await this.#peer.connect(transport);
  }

  /** Ends the conversation; the server can be connected again. */
  async close() {
    await this.#peer.close();
  }

  #handle(method, params, extra) {
    switch (method) {
      case 'initialize':
        return this.#introduce(params);
      case 'ping':
        return {};
      case 'tools/list':
        if (this.#tools) return { tools: [...this.#tools.values()].map(shown) };
        break;
      case 'tools/call':
        if (this.#tools) return this.#call(params, extra);
        break;
    }
    throw new RpcError(METHOD_NOT_FOUND, 'Method not found');
  }

  #introduce({ protocolVersion: wanted }) {
    return {
      protocolVersion: VERSIONS.includes(wanted) ? wanted : VERSIONS[0],
      capabilities: this.#tools ? { tools: {} } : {},
      serverInfo: this.#info,
      ...(this.#instructions !== undefined && { instructions: this.#instructions }),
    };
  }

  /** What a call comes to; all that is the model's to mend is a result. */
  async #call({ name, arguments: given = {} }, extra) {
    if (typeof name !== 'string') throw new RpcError(INVALID_PARAMS, 'params.name is no string');
    const tool = this.#tools.get(name);
    if (!tool) return failed(`Tool ${name} not found`);
    try {
      const { value, faults } = tool.check ? await tool.check(given) : { value: given };
      if (faults) return failed(`Invalid arguments for tool ${name}:\n${faults.join('\n')}`);
      return completed(name, await tool.handler(value, extra));
    } catch (error) {
      return failed(describeThrown(error).message || `Tool ${name} failed`);
    }
  }
}

function shown({ name, description, schema, annotations, meta }) {
  return { name, description, inputSchema: schema, annotations, _meta: meta };
}

function completed(name, result) {
  if (!isObject(result) || Array.isArray(result)) {
    return failed(`Tool ${name} gave no result: its handler must return {content: [...]}`);
  }
  return result.content === undefined ? { ...result, content: [] } : result;
}

function failed(text) {
  return { content: [{ type: 'text', text }], isError: true };
}

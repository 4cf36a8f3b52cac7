/**
 * Clients of server objects, and the packages that make such objects.
 *
 * @module
 */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { prepareMcpServers } from '../../js/mcp/servers.js';
import { oracle } from '../../scripts/oracle.js';

const require = createRequire(join(oracle('mcp-sdk'), 'package.json'));

/** The SDK of the protocol: classes, and schemas of its messages. */
export const mcp = {
  ...require('@modelcontextprotocol/sdk/server/mcp.js'),
  ...require('@modelcontextprotocol/sdk/client/index.js'),
  ...require('@modelcontextprotocol/sdk/inMemory.js'),
  ...require('@modelcontextprotocol/sdk/types.js'),
};

/** The zod of that SDK. */
export const { z } = require('zod');

/** The helper of the Claude Agent SDK. */
export async function claudeHelper() {
  const { resolve } = createRequire(join(oracle('claude-tools'), 'package.json'));
  return import(pathToFileURL(resolve('@anthropic-ai/claude-agent-sdk')));
}

/** The functions that the core gets for a server object. */
export function functionsOf(instance) {
  return prepareMcpServers({ it: { type: 'sdk', name: 'it', instance } }).it.instance;
}

/** A client that uses these functions as the core does. */
export class LinkClient {
  static #links = 0;
  #functions;
  #link = { link: LinkClient.#links++ };
  #lastId = 0;
  #answers = new Map();
  /** Notifications that came, and what wakes those who wait for more. */
  notifications = [];
  /** Requests of the server that came. */
  requests = [];
  #wake = [];
  /** Answers requests of the server. */
  answer = ({ id, method }) =>
    method === 'ping'
      ? { jsonrpc: '2.0', id, result: {} }
      : { jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found' } };

  constructor(functions) {
    this.#functions = functions;
  }

  /** Opens a link to a server object and introduces itself; closes when the test ends. */
  static async to(t, instance) {
    const client = new LinkClient(functionsOf(instance));
    await client.open();
    t.after(() => client.close());
    await client.introduce();
    return client;
  }

  async open(signal = new AbortController().signal) {
    await this.#functions.open(this.#link, signal);
    this.ended = this.#poll();
  }

  async introduce() {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    };
    const result = await this.request('initialize', params);
    this.send({ method: 'notifications/initialized' });
    return result;
  }

  close() {
    this.#functions.close(this.#link);
  }

  send(frame) {
    // What crosses the border is JSON.
    this.#functions.send({
      ...this.#link,
      frame: JSON.parse(JSON.stringify({ jsonrpc: '2.0', ...frame })),
    });
  }

  /** @returns {Promise<object>} the result; rejects with the error */
  request(method, params, id = ++this.#lastId) {
    const answer = new Promise((resolve, reject) => {
      this.#answers.set(id, ({ result, error }) => (error ? reject(error) : resolve(result)));
    });
    this.send({ id, method, params });
    return answer;
  }

  call(name, args = {}, more = {}) {
    return this.request('tools/call', { name, arguments: args, ...more });
  }

  /** The text of the result of a call. */
  async text(name, args) {
    const { content } = await this.call(name, args);
    return content[0].text;
  }

  /** Waits until a notification of a kind has come. */
  async notified(method) {
    for (;;) {
      const found = this.notifications.find((frame) => frame.method === method);
      if (found) return found;
      await new Promise((resolve) => this.#wake.push(resolve));
    }
  }

  async #poll() {
    for (;;) {
      const texts = await this.#functions.receive(this.#link, new AbortController().signal);
      if (texts === null) return;
      for (const text of texts) this.#take(JSON.parse(text));
      for (const wake of this.#wake.splice(0)) wake();
    }
  }

  #take(frame) {
    if (frame.method === undefined) {
      this.#answers.get(frame.id)?.(frame);
      this.#answers.delete(frame.id);
    } else if (frame.id === undefined) {
      this.notifications.push(frame);
    } else {
      this.requests.push(frame);
      const answer = this.answer(frame);
      if (answer) this.send(answer);
    }
  }
}

/**
 * The servers that all contenders talk to, each in a process of its own: the emulator, and one that
 * repeats what the emulator answered.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { rules } from './script.js';

const EMULATOR = fileURLToPath(new URL('../emulator/cli.js', import.meta.url));
const REPLAY = fileURLToPath(new URL('replay.js', import.meta.url));

/** The running servers. */
export class Server {
  #children = [];
  #url;
  #marked = 0;
  /** @type {{ gatewayUrl: string, apiKey: string }} the emulator: checks requests, counts them */
  gateway;
  /** @type {{ gatewayUrl: string, apiKey: string }} recorded answers: leaves the time to clients */
  replay;

  /**
   * @param {number} chunks deltas of the long answers
   * @returns {Promise<Server>}
   */
  static async start(chunks) {
    const server = new Server();
    const emulator = await server.#spawn(EMULATOR, '--json', '--exit-on-stdin-end');
    const { url, gatewayUrl, apiKey } = emulator;
    server.#url = url;
    server.gateway = { gatewayUrl, apiKey };
    await server.#ask('POST', 'rules', rules(chunks));
    server.replay = await server.#spawn(REPLAY, JSON.stringify(server.gateway));
    return server;
  }

  /** Starts to count requests anew. */
  async mark() {
    this.#marked = (await this.#ask('GET', 'state')).requests;
  }

  /** @returns {Promise<number>} requests since the last `mark` */
  async count() {
    return (await this.#ask('GET', 'state')).requests - this.#marked;
  }

  /** @returns {Promise<object[]>} requests since the last `mark` */
  async requests() {
    return (await this.#ask('GET', 'requests')).slice(this.#marked);
  }

  /** Fails when the server refused a request as invalid: then it was not the work that was timed. */
  async assertNoViolations() {
    const [violation] = await this.#ask('GET', 'violations');
    if (violation) throw new Error(`refused: ${violation.rule}: ${violation.message}`);
  }

  async close() {
    await Promise.all(this.#children.map(stop));
  }

  /** Starts a server whose first line of output is JSON. */
  async #spawn(...args) {
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#children.push(child);
    const lines = createInterface({ input: child.stdout });
    const [line] = await Promise.race([once(lines, 'line'), once(lines, 'close')]);
    if (line === undefined) throw new Error(`${args[0]} did not start`);
    return JSON.parse(line);
  }

  async #ask(method, action, body) {
    const response = await fetch(`${this.#url}/_emulator/${action}`, {
      method,
      body: body && JSON.stringify(body),
    });
    const value = await response.json();
    if (!response.ok) throw new Error(`emulator: ${value.error?.message}`);
    return value;
  }
}

async function stop(child) {
  const closed = once(child, 'close');
  child.stdin.end();
  await closed;
}

import { createServer } from 'node:http';

import { Exchange } from './exchange.js';

/** HTTP server that knows its sockets and running exchanges, and can end all of them at once. */
export class HttpHost {
  #server;
  #sockets = new Set();
  #running = new Set();
  #waiters = [];
  #closing;

  /** @param {(exchange: Exchange) => Promise<void>} handler */
  constructor(handler) {
    this.#server = createServer((request, response) => this.#run(handler, request, response));
    // A pooled connection must not be closed under a client that is about to reuse it.
    this.#server.keepAliveTimeout = 0;
    this.#server.requestTimeout = 0;
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Number of open connections, idle ones included. */
  get openSockets() {
    return this.#sockets.size;
  }

  /**
   * @param {number} port
   * @param {string} host
   * @returns {Promise<import('node:net').AddressInfo>} what was bound
   */
  async listen(port, host) {
    await new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.off('error', reject);
        resolve();
      });
    });
    return this.#server.address();
  }

  /** @returns {Promise<void>} resolves when no request is in flight */
  async idle() {
    if (this.#running.size === 0) return;
    await new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Stops listening and ends everything that is still open. Safe to call twice. */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    const stopped = new Promise((resolve) => this.#server.close(resolve));
    for (const exchange of this.#running) exchange.destroy();
    for (const socket of this.#sockets) socket.destroy();
    await stopped;
    await this.idle();
  }

  async #run(handler, request, response) {
    const exchange = new Exchange(request, response);
    this.#running.add(exchange);
    // Not awaited: a scripted reply that never resolves must not keep `idle` and `close` waiting.
    handler(exchange).catch((error) => {
      if (response.headersSent) exchange.destroy();
      else exchange.sendError(500, 'api_error', `emulator failed: ${error?.stack ?? error}`);
    });
    await exchange.closed;
    this.#running.delete(exchange);
    if (this.#running.size > 0) return;
    for (const resolve of this.#waiters.splice(0)) resolve();
  }
}

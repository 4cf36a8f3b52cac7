import { messagesError } from '../gateway/errors.js';
import { newId } from '../model/ids.js';

/** Larger bodies are refused, as the real API does. */
const BODY_LIMIT = 32 * 1024 * 1024;

/**
 * One request with its response. `signal` fires as soon as nobody waits for the response any more:
 * the client has gone, the response is complete, or the emulator closes.
 */
export class Exchange {
  #abort = new AbortController();
  #cutHere = false;
  /**
   * Makes the body of an error; the endpoint that was asked sets its own.
   *
   * @type {typeof messagesError}
   */
  errorForm = messagesError;

  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  constructor(request, response) {
    this.request = request;
    this.response = response;
    this.id = newId('req');
    this.at = Date.now();
    // Not `new URL`: it throws on targets such as `//`, which anybody may send.
    [this.pathname] = request.url.split('?', 1);
    this.signal = this.#abort.signal;
    response.setHeader('request-id', this.id);
    this.closed = new Promise((resolve) => {
      response.once('close', () => {
        this.#abort.abort();
        resolve();
      });
    });
  }

  /** Whether the client went away before it had the whole response. */
  get abandoned() {
    return this.signal.aborted && !this.response.writableFinished && !this.#cutHere;
  }

  /** Closes the socket; the client sees a broken response. */
  destroy() {
    this.#cutHere = true;
    this.response.destroy();
    this.request.socket.destroy();
  }

  /**
   * Reads the body.
   *
   * @returns {Promise<Buffer | null>} `null` when the client went away or sent too much
   */
  async readBody() {
    const pieces = [];
    let size = 0;
    try {
      for await (const piece of this.request) {
        size += piece.length;
        // What is above the limit is read and dropped: a client that still writes would otherwise
        // see a reset instead of the refusal.
        if (size <= BODY_LIMIT) pieces.push(piece);
      }
    } catch {
      return null;
    }
    if (size <= BODY_LIMIT) return Buffer.concat(pieces);
    this.sendError(413, 'request_too_large', 'Request exceeds the maximum size of 32 MB');
    return null;
  }

  /**
   * Sends JSON.
   *
   * @param {number} status
   * @param {unknown} value
   * @param {object} [headers]
   */
  sendJson(status, value, headers = {}) {
    this.send(status, JSON.stringify(value), { 'content-type': 'application/json', ...headers });
  }

  /**
   * Sends an error.
   *
   * @param {number} status
   * @param {string} type e.g. `invalid_request_error`
   * @param {string} message
   * @param {object} [headers]
   */
  sendError(status, type, message, headers) {
    this.sendJson(status, this.errorForm({ type, message }, this.id), headers);
  }

  /**
   * Sends a complete response.
   *
   * @param {number} status
   * @param {string} body
   * @param {object} [headers]
   */
  send(status, body, headers = {}) {
    if (this.signal.aborted) return;
    this.response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    this.response.end(body);
  }
}

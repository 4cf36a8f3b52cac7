/**
 * The one connection to a server object of the program, which all that use it share.
 *
 * @module
 */
import { toJson } from '../json.js';
import { describeThrown } from '../thrown.js';
import { FrameQueue } from './frame-queue.js';
import {
  INTERNAL_ERROR,
  UNAVAILABLE,
  answerFrame,
  attempt,
  cancelFrame,
  errorFrame,
  failureText,
} from './json-rpc.js';

/** Requests of a server that are open at once. */
const MAX_ASKED = 1_000;
const LIST_CHANGED = /^notifications\/(tools|prompts|resources)\/list_changed$/;

/** By server object; an open one has clients. */
const connections = new WeakMap();

/**
 * Becomes a client of a server object: connects to it, unless that was done already.
 *
 * @param {object} instance with `connect(transport)`
 * @param {AbortSignal} signal gives up
 * @returns {Promise<Client>} rejects when the server refuses, or is connected to something else
 */
export async function join(instance, signal) {
  let connection = connections.get(instance);
  if (!connection) {
    connection = new Connection(instance);
    connections.set(instance, connection);
  }
  return connection.join(signal);
}

class Connection {
  #instance;
  #transport = {
    sessionId: undefined,
    onmessage: undefined,
    onclose: undefined,
    onerror: undefined,
    start: async () => {},
    send: async (message, options) => {
      attempt(() => this.#fromServer(message, options), this.#tellServer);
    },
    close: async () => this.#close(),
  };
  #opened;
  #isOpen = false;
  #isClosed = false;
  #clients = new Set();
  #lastId = 0;
  /** Requests of clients, by the id that the server sees: client, and what that calls it. */
  #pending = new Map();
  /** Requests of the server, by id: the client that was asked. */
  #asked = new Map();

  constructor(instance) {
    this.#instance = instance;
    this.#opened = this.#open();
    // Those who join are told; the last of them may be gone.
    this.#opened.catch(() => {});
  }

  async #open() {
    // The caller first notes that there is a connection.
    await undefined;
    try {
      await this.#instance.connect(this.#transport);
    } catch (error) {
      this.#close();
      throw refused(error);
    }
    if (typeof this.#transport.onmessage !== 'function') {
      this.#close();
      throw new Error('its connect() did not set onmessage: it is no MCP server');
    }
    this.#isOpen = true;
    this.#closeIfUnused();
  }

  async join(signal) {
    const client = new Client(this);
    this.#clients.add(client);
    try {
      await orAborted(this.#opened, signal);
    } catch (error) {
      this.leave(client);
      throw error;
    }
    return client;
  }

  /** Lets a client go, and the server with the last one. */
  leave(client) {
    if (!this.#clients.delete(client)) return;
    client.queue.end();
    for (const [id, { client: owner }] of this.#pending) {
      if (owner !== client) continue;
      this.#pending.delete(id);
      this.#give(cancelFrame(id, 'The client is gone.'));
    }
    for (const [id, asked] of this.#asked) {
      if (asked !== client) continue;
      this.#asked.delete(id);
      this.#give(errorFrame(id, UNAVAILABLE, 'The client is gone.'));
    }
    this.#closeIfUnused();
  }

  #closeIfUnused() {
    if (this.#isOpen && this.#clients.size === 0) this.#close();
  }

  /** Ends this connection only: what else the program connects the server to is its own. */
  #close() {
    if (this.#isClosed) return;
    this.#isClosed = true;
    connections.delete(this.#instance);
    for (const client of this.#clients) client.queue.end();
    this.#clients.clear();
    this.#pending.clear();
    this.#asked.clear();
    attempt(() => this.#transport.onclose?.());
  }

  /** Gives the server a frame of a client. */
  send(client, frame) {
    if (!this.#clients.has(client)) throw new Error('the server has closed the connection');
    if (frame.method === undefined) this.#reply(client, frame);
    else if (frame.id === undefined) this.#note(client, frame);
    else this.#request(client, frame);
  }

  #request(client, { id: own, params, ...frame }) {
    const id = ++this.#lastId;
    const token = params?._meta?.progressToken;
    this.#pending.set(id, { client, own, token });
    const given =
      token === undefined ? params : { ...params, _meta: { ...params._meta, progressToken: id } };
    this.#give({ ...frame, id, ...(given && { params: given }) }, (error) =>
      this.#answered(errorFrame(id, INTERNAL_ERROR, failureText(error))),
    );
  }

  #note(client, frame) {
    if (frame.method !== 'notifications/cancelled') return this.#give(frame);
    const own = frame.params?.requestId;
    for (const [id, pending] of this.#pending) {
      if (pending.client !== client || pending.own !== own) continue;
      // No answer follows, and one that comes nevertheless is for nobody.
      this.#pending.delete(id);
      this.#give({ ...frame, params: { ...frame.params, requestId: id } });
    }
  }

  #reply(client, frame) {
    if (this.#asked.get(frame.id) !== client) return;
    this.#asked.delete(frame.id);
    this.#give(frame);
  }

  #give(frame, onFailure) {
    attempt(() => this.#transport.onmessage?.(frame), onFailure);
  }

  #fromServer(message, options) {
    if (this.#isClosed) return;
    const { id, method } = message;
    const related = this.#pending.get(options?.relatedRequestId)?.client;
    if (method === undefined) this.#answered(message);
    else if (id !== undefined) this.#asks(message, related);
    else if (method === 'notifications/progress') this.#progressed(message);
    else if (method === 'notifications/cancelled') this.#tookBack(message);
    else if (LIST_CHANGED.test(method)) this.#changed(method);
    else this.#told(message, options?.relatedRequestId === undefined ? this.#clients : [related]);
  }

  #answered(message) {
    const pending = this.#pending.get(message.id);
    if (!pending) return;
    this.#pending.delete(message.id);
    const { client, own } = pending;
    try {
      client.queue.answer(toJson(answerFrame(own, message)));
    } catch (error) {
      const what = `The result cannot be written as JSON: ${failureText(error)}`;
      client.queue.answer(toJson(errorFrame(own, INTERNAL_ERROR, what)));
      this.#tellServer(error);
    }
  }

  #asks(message, related) {
    const { id } = message;
    const [first] = this.#clients;
    const client = related ?? first;
    if (client && this.#asked.size < MAX_ASKED && client.queue.ask(toJson(message))) {
      this.#asked.set(id, client);
    } else {
      this.#give(errorFrame(id, UNAVAILABLE, 'No client answers requests now.'));
    }
  }

  #progressed({ params, ...frame }) {
    const { client, token } = this.#pending.get(params?.progressToken) ?? {};
    if (token === undefined) return;
    client.queue.note(toJson({ ...frame, params: { ...params, progressToken: token } }));
  }

  #tookBack(message) {
    const id = message.params?.requestId;
    const client = this.#asked.get(id);
    if (!client) return;
    this.#asked.delete(id);
    client.queue.note(toJson(message));
  }

  #changed(method) {
    for (const { queue } of this.#clients) queue.announce(method);
  }

  #told(message, clients) {
    const text = toJson(message);
    for (const client of clients) client?.queue.note(text);
  }

  #tellServer = (error) => attempt(() => this.#transport.onerror?.(error));
}

/** One user of a connection. */
class Client {
  #connection;
  queue = new FrameQueue();

  constructor(connection) {
    this.#connection = connection;
  }

  /** @param {object} frame for the server */
  send(frame) {
    this.#connection.send(this, frame);
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<string[] | null>} frames of the server as texts; null when it is gone
   */
  receive(signal) {
    return this.queue.receive(signal);
  }

  leave() {
    this.#connection.leave(this);
  }
}

function refused(error) {
  const { message } = describeThrown(error);
  if (!/already connected/i.test(message)) return error;
  return new Error(
    'the server is connected to another transport, and serves one at a time: ' +
      'close() it there, or give the agent a server object of its own',
    { cause: error },
  );
}

/** Waits for a promise, or for the signal. */
async function orAborted(promise, signal) {
  let abort;
  const aborted = new Promise((resolve, reject) => {
    abort = () => reject(new Error('connecting was given up'));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

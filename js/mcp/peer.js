/**
 * One side of a JSON-RPC conversation over a transport of the MCP SDK's form.
 *
 * @module
 */
import {
  INTERNAL_ERROR,
  UNAVAILABLE,
  attempt,
  cancelFrame,
  errorFrame,
  failureText,
  isObject,
} from './json-rpc.js';

/** Milliseconds that the other side may take to answer, unless a request says otherwise. */
const REQUEST_MS = 60_000;

/** An error that is told to the other side with its code. */
export class RpcError extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

export class Peer {
  #handle;
  #transport;
  /** Requests of the other side that run, by id. */
  #running = new Map();
  /** Requests to the other side, by id. */
  #asked = new Map();
  #lastId = 0;

  /** @param {(method: string, params: object, extra: object) => unknown} handle answers requests */
  constructor(handle) {
    this.#handle = handle;
  }

  async connect(transport) {
    if (this.#transport) {
      throw new Error(
        'Already connected to a transport. Call close() before connecting to a new transport.',
      );
    }
    this.#transport = transport;
    const { onclose, onmessage } = transport;
    transport.onclose = () => {
      onclose?.();
      this.#closed(transport);
    };
    transport.onmessage = (message, extra) => {
      onmessage?.(message, extra);
      this.#receive(message, extra ?? {}, transport);
    };
    try {
      await transport.start();
    } catch (error) {
      this.#closed(transport);
      throw error;
    }
  }

  async close() {
    await this.#transport?.close();
  }

  #closed(transport) {
    if (this.#transport !== transport) return;
    this.#transport = undefined;
    for (const controller of this.#running.values()) controller.abort();
    this.#running.clear();
    for (const { reject } of this.#asked.values()) {
      reject(new RpcError(UNAVAILABLE, 'Connection closed'));
    }
    this.#asked.clear();
  }

  #receive(message, extra, transport) {
    if (!isObject(message)) return;
    const { id, method, params } = message;
    if (typeof method !== 'string') return this.#answered(message);
    if (id !== undefined) return void this.#answer(message, extra, transport);
    if (method === 'notifications/cancelled') {
      this.#running.get(params?.requestId)?.abort(params.reason);
    }
  }

  /** Answers a request, unless it is cancelled; then it is not answered. */
  async #answer({ id, method, params }, more, transport) {
    const controller = new AbortController();
    const { signal } = controller;
    this.#running.set(id, controller);
    let frame;
    try {
      const result = await this.#handle(
        method,
        isObject(params) ? params : {},
        this.#extra(id, params, more, signal, transport),
      );
      frame = { result, jsonrpc: '2.0', id };
    } catch (error) {
      frame = failure(id, error);
    }
    if (this.#running.get(id) === controller) this.#running.delete(id);
    if (signal.aborted) return;
    // A result that the transport cannot write is a failure, not silence.
    const onFailure = (error) => attempt(() => transport.send(failure(id, error)));
    attempt(() => transport.send(frame), onFailure);
  }

  /** What a handler may want to know of a request, and do in it. */
  #extra(id, params, more, signal, transport) {
    const related = { relatedRequestId: id };
    return {
      signal,
      sessionId: transport.sessionId,
      _meta: params?._meta,
      requestId: id,
      sendNotification: async (notification) => {
        if (signal.aborted) return;
        await transport.send({ ...notification, jsonrpc: '2.0' }, related);
      },
      sendRequest: (request, schema, options) =>
        this.#ask(request, schema, { ...options, inner: signal, related, transport }),
      authInfo: more.authInfo,
      requestInfo: more.requestInfo,
      taskId: undefined,
      taskStore: undefined,
      taskRequestedTtl: undefined,
      closeSSEStream: more.closeSSEStream,
      closeStandaloneSSEStream: more.closeStandaloneSSEStream,
    };
  }

  /** Asks the other side; `schema` has `parse`, as those of zod have. */
  async #ask(request, schema, { signal, inner, timeout = REQUEST_MS, related, transport }) {
    const signals = AbortSignal.any([inner, ...(signal ? [signal] : [])]);
    signals.throwIfAborted();
    const id = ++this.#lastId;
    const { promise, resolve, reject } = withResolvers();
    this.#asked.set(id, { resolve, reject });
    const giveUp = (code, message) => {
      attempt(() => transport.send(cancelFrame(id, message)));
      reject(new RpcError(code, message));
    };
    const stop = () => giveUp(UNAVAILABLE, 'Request was cancelled');
    signals.addEventListener('abort', stop, { once: true });
    // It does not keep the process alive: nobody waits for a conversation that ended.
    const timer = setTimeout(() => giveUp(-32001, 'Request timed out'), timeout).unref();
    try {
      attempt(() => transport.send({ ...request, jsonrpc: '2.0', id }, related), reject);
      const result = await promise;
      return typeof schema?.parse === 'function' ? schema.parse(result) : result;
    } finally {
      clearTimeout(timer);
      signals.removeEventListener('abort', stop);
      this.#asked.delete(id);
    }
  }

  #answered({ id, result, error }) {
    const { resolve, reject } = this.#asked.get(id) ?? {};
    if (isObject(error)) reject?.(new RpcError(error.code, String(error.message), error.data));
    else resolve?.(result);
  }
}

function failure(id, error) {
  const { code, message, data } =
    error instanceof RpcError ? error : { code: INTERNAL_ERROR, message: failureText(error) };
  const frame = errorFrame(id, code, message);
  if (data !== undefined) frame.error.data = data;
  return frame;
}

function withResolvers() {
  let settle;
  const promise = new Promise((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle };
}

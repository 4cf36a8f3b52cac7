/**
 * Messages of the Claude Agent SDK by hand, and what `AcpStreamAdapter` makes of them.
 *
 * @module
 */
import { AcpStreamAdapter } from '../../index.js';

/** An event of the model; `parent` is the call of a sub-agent. */
export function event(value, parent = null) {
  return { type: 'stream_event', event: value, parent_tool_use_id: parent };
}

/** A whole answer. */
export function assistant(content, { id = 'msg_1', parent = null } = {}) {
  const message = { id, type: 'message', role: 'assistant', content };
  return { type: 'assistant', message, parent_tool_use_id: parent };
}

/** The result of a call. */
export function toolResult(id, content, isError = false) {
  const block = { type: 'tool_result', tool_use_id: id, content, is_error: isError };
  return { type: 'user', message: { role: 'user', content: [block] }, parent_tool_use_id: null };
}

/** The end of a run. */
export function result(more = {}) {
  return { type: 'result', subtype: 'success', is_error: false, result: '', ...more };
}

/**
 * What the adapter makes of messages.
 *
 * @param {object[]} messages
 * @param {string} [sessionId]
 * @param {AcpStreamAdapter} [adapter]
 */
export async function adapted(messages, sessionId = 'conv', adapter = new AcpStreamAdapter()) {
  const source = (async function* () {
    yield* messages;
  })();
  const context = { conversationId: sessionId, sessionId, userId: 'ann', turnId: 'turn_1' };
  const elements = [];
  for await (const element of adapter.adapt(source, context)) elements.push(element);
  return elements;
}

/** The updates among elements. */
export function updatesOf(elements) {
  return elements.map(({ params }) => params?.update).filter(Boolean);
}

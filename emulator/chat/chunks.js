import { planEvents } from '../model/events.js';
import { finishReason } from './finish-reason.js';
import { now } from './now.js';
import { chatUsage } from './usage.js';

/** The last event of a stream; the only one that is no JSON. */
export const DONE = '[DONE]';

/**
 * The chunks of a streamed answer. They are made from the events of the Messages API, so that both
 * endpoints cut and mix an answer in the same way.
 *
 * @param {import('../model/plan.js').Plan} plan
 * @param {{ stream_options?: { include_usage?: boolean } }} body of the request
 * @returns {Generator<object | string>}
 */
export function* planChunks(plan, body) {
  const created = now();
  const chunk = (choices, more) => ({
    id: plan.id,
    object: 'chat.completion.chunk',
    created,
    model: plan.model,
    choices,
    ...more,
  });
  const choice = (delta, reason = null) => chunk([{ index: 0, delta, finish_reason: reason }]);

  yield choice({ role: 'assistant', content: '' });
  for (const delta of deltas(planEvents(plan))) yield choice(delta);
  yield choice({}, finishReason(plan.stopReason));
  if (body.stream_options?.include_usage) yield chunk([], { usage: chatUsage(plan.usage) });
  yield DONE;
}

function* deltas(events) {
  /** Calls by their block index. `head` is what the first chunk of a call must tell. */
  const calls = new Map();
  for (const { type, index, content_block: block, delta } of events) {
    if (type === 'content_block_start' && block.type === 'tool_use') {
      const { id, name } = block;
      calls.set(index, { number: calls.size, head: { id, name } });
    } else if (type === 'content_block_delta') {
      yield* contentDelta(delta, calls.get(index));
    } else if (type === 'content_block_stop' && calls.get(index)?.head) {
      yield callDelta(calls.get(index));
    }
  }
}

/** Signatures have no counterpart. */
function* contentDelta(delta, call) {
  if (delta.type === 'text_delta') yield { content: delta.text };
  if (delta.type === 'thinking_delta') yield { reasoning_content: delta.thinking };
  if (delta.type === 'input_json_delta') yield callDelta(call, delta.partial_json);
}

/** The first fragment of the arguments comes together with id and name. */
function callDelta(call, text) {
  const { number, head } = call;
  call.head = null;
  const fragment = text === undefined ? {} : { arguments: text };
  const piece = head
    ? { id: head.id, type: 'function', function: { name: head.name, ...fragment } }
    : { function: fragment };
  return { tool_calls: [{ index: number, ...piece }] };
}

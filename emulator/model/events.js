/**
 * The events of a streamed answer, in order.
 *
 * @param {import('./plan.js').Plan} plan
 * @returns {Generator<object>}
 */
export function* planEvents(plan) {
  yield {
    type: 'message_start',
    message: {
      id: plan.id,
      type: 'message',
      role: 'assistant',
      model: plan.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: plan.startUsage,
    },
  };
  for (const group of groupParts(plan.parts)) yield* groupEvents(group);
  yield {
    type: 'message_delta',
    delta: { stop_reason: plan.stopReason, stop_sequence: plan.stopSequence },
    usage: plan.usage,
  };
  yield { type: 'message_stop' };
}

/** Neighbours that may be mixed form one group; every other part is a group of its own. */
function groupParts(parts) {
  const groups = [];
  parts.forEach((part, index) => {
    const last = groups.at(-1);
    if (part.parallel && last?.at(-1).part.parallel) last.push({ part, index });
    else groups.push([{ part, index }]);
  });
  return groups;
}

function* groupEvents(group) {
  for (const { part, index } of group) {
    yield { type: 'content_block_start', index, content_block: part.start };
  }
  if (group.length === 1) {
    const [{ part, index }] = group;
    for (const delta of part.deltas) yield { type: 'content_block_delta', index, delta };
  } else {
    yield* roundRobin(group);
  }
  for (const { index } of group) yield { type: 'content_block_stop', index };
}

function* roundRobin(group) {
  let open = group.map(({ part, index }) => ({ index, deltas: part.deltas[Symbol.iterator]() }));
  while (open.length > 0) {
    const alive = [];
    for (const entry of open) {
      const { done, value } = entry.deltas.next();
      if (done) continue;
      yield { type: 'content_block_delta', index: entry.index, delta: value };
      alive.push(entry);
    }
    open = alive;
  }
}

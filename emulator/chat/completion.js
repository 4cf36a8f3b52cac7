import { finishReason } from './finish-reason.js';
import { now } from './now.js';
import { chatUsage } from './usage.js';

/**
 * The plan as the JSON object that a request without `stream` gets.
 *
 * @param {import('../model/plan.js').Plan} plan
 * @returns {object}
 */
export function planCompletion(plan) {
  return {
    id: plan.id,
    object: 'chat.completion',
    created: now(),
    model: plan.model,
    choices: [
      { index: 0, message: message(plan.parts), finish_reason: finishReason(plan.stopReason) },
    ],
    usage: chatUsage(plan.usage),
  };
}

function message(parts) {
  const text = joined(parts, 'text');
  const thinking = joined(parts, 'thinking');
  const calls = parts.filter(({ start }) => start.type === 'tool_use').map(toCall);
  const whole = { role: 'assistant', content: text === '' && calls.length > 0 ? null : text };
  if (thinking !== '') whole.reasoning_content = thinking;
  if (calls.length > 0) whole.tool_calls = calls;
  return whole;
}

/** Texts of one type of block; the block has its text under the name of the type. */
function joined(parts, type) {
  return parts
    .filter(({ start }) => start.type === type)
    .map(({ final }) => final[type])
    .join('');
}

function toCall({ final: { id, name }, json }) {
  return { id, type: 'function', function: { name, arguments: json } };
}

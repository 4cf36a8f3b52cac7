import { blocksOfType, isObject, messageBlocks } from './walk.js';

/** Rules that tie tool calls to their results. */
export const toolPairRules = {
  'tool-use-input': toolUseInput,
  'tool-use-name': toolUseName,
  'tool-use-ids-unique': toolUseIdsUnique,
  'results-first': resultsFirst,
  'results-known': resultsKnown,
  'results-once': resultsOnce,
  'calls-answered': callsAnswered,
  'results-in-order': resultsInOrder,
};

function toolUseInput(request) {
  for (const { block, path } of messageBlocks(request)) {
    if (block.type === 'tool_use' && !isObject(block.input)) {
      return `${path}.input must be an object`;
    }
  }
  return null;
}

function toolUseName(request) {
  for (const { block, path } of messageBlocks(request)) {
    if (block.type === 'tool_use' && !/^[a-zA-Z0-9_-]{1,200}$/.test(block.name)) {
      return `${path}.name ${JSON.stringify(block.name)} must match ^[a-zA-Z0-9_-]{1,200}$`;
    }
  }
  return null;
}

function toolUseIdsUnique(request) {
  const seen = new Map();
  for (const { block, path } of messageBlocks(request)) {
    if (block.type !== 'tool_use') continue;
    if (seen.has(block.id)) return `${path}.id "${block.id}" was used at ${seen.get(block.id)}`;
    seen.set(block.id, path);
  }
  return null;
}

function resultsFirst({ messages }) {
  for (const [index, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    const firstOther = content.findIndex(({ type }) => type !== 'tool_result');
    if (firstOther < 0) continue;
    const late = content.findIndex(({ type }, at) => at > firstOther && type === 'tool_result');
    if (late >= 0) return `messages.${index}.content.${late}: a tool_result must come first`;
  }
  return null;
}

function resultsKnown(request) {
  for (const { block, path, index } of messageBlocks(request)) {
    if (block.type !== 'tool_result') continue;
    if (callIds(request.messages, index - 1).includes(block.tool_use_id)) continue;
    return `${path}.tool_use_id "${block.tool_use_id}" has no tool_use in the previous message`;
  }
  return null;
}

function resultsOnce({ messages }) {
  for (const index of messages.keys()) {
    const seen = new Set();
    for (const { block, path } of blocksOfType(messages, index, 'tool_result')) {
      if (seen.has(block.tool_use_id))
        return `${path} answers "${block.tool_use_id}" a second time`;
      seen.add(block.tool_use_id);
    }
  }
  return null;
}

function callsAnswered({ messages }) {
  for (const index of messages.keys()) {
    const answered = resultIds(messages, index + 1);
    for (const { block, path } of blocksOfType(messages, index, 'tool_use')) {
      if (answered.includes(block.id)) continue;
      return `${path}: tool_use "${block.id}" has no tool_result in messages.${index + 1}`;
    }
  }
  return null;
}

function resultsInOrder({ messages }) {
  for (const index of messages.keys()) {
    const calls = callIds(messages, index);
    const results = resultIds(messages, index + 1);
    if (calls.every((id, at) => id === results[at])) continue;
    return `messages.${index + 1}: results ${results.join(', ')} must follow the calls ${calls.join(', ')}`;
  }
  return null;
}

function callIds(messages, index) {
  return blocksOfType(messages, index, 'tool_use').map(({ block }) => block.id);
}

function resultIds(messages, index) {
  return blocksOfType(messages, index, 'tool_result').map(({ block }) => block.tool_use_id);
}

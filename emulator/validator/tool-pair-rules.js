import { pairingRules, uniqueIds } from './pairing-rules.js';
import { blocksOfType, isObject, messageBlocks } from './walk.js';

/** Rules about tool calls and the results that belong to them. */
export const toolPairRules = {
  'tool-use-input': toolUseInput,
  'tool-use-name': toolUseName,
  'tool-use-ids-unique': toolUseIdsUnique,
  'results-first': resultsFirst,
  ...pairingRules(rounds),
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

function toolUseIdsUnique({ messages }) {
  return uniqueIds([...messages.keys()].flatMap((index) => callsAt(messages, index)));
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

/** Every message may hold the results of the one before it. */
function rounds({ messages }) {
  return Array.from({ length: messages.length + 1 }, (_, index) => ({
    calls: callsAt(messages, index - 1),
    results: blocksOfType(messages, index, 'tool_result').map(({ block, path }) => ({
      id: block.tool_use_id,
      path,
    })),
    place: `messages.${index}`,
  }));
}

function callsAt(messages, index) {
  return blocksOfType(messages, index, 'tool_use').map(({ block, path }) => ({
    id: block.id,
    path,
  }));
}

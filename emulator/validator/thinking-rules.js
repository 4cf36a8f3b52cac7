import { isOwnSignature, signThinking } from '../model/signature.js';
import { blocksOfType, messageBlocks } from './walk.js';

/** Rules about thinking blocks. */
export const thinkingRules = {
  'thinking-signed': thinkingSigned,
  'thinking-unchanged': thinkingUnchanged,
  'thinking-kept': thinkingKept,
  'thinking-not-last': thinkingNotLast,
};

function thinkingSigned(request) {
  for (const { block, path } of messageBlocks(request)) {
    if (block.type !== 'thinking') continue;
    if (typeof block.signature !== 'string' || block.signature === '') {
      return `${path}.signature must be a non-empty string`;
    }
  }
  return null;
}

function thinkingUnchanged(request, memory) {
  for (const { block, path } of messageBlocks(request)) {
    if (block.type !== 'thinking') continue;
    const { thinking, signature } = block;
    const texts = memory?.textsOf(signature);
    const changed = texts
      ? !texts.has(thinking)
      : isOwnSignature(signature) && signature !== signThinking(thinking);
    if (changed) return `${path}.thinking is not the text that was signed`;
  }
  return null;
}

/** While a tool loop runs, the thinking that led to the calls must accompany them. */
function thinkingKept({ messages }, memory) {
  if (!memory || blocksOfType(messages, messages.length - 1, 'tool_result').length === 0) {
    return null;
  }
  const index = messages.length - 2;
  const sent = blocksOfType(messages, index, 'thinking').map(({ block }) => block.signature);
  for (const { block, path } of blocksOfType(messages, index, 'tool_use')) {
    const missing = memory.signaturesOfCall(block.id).some((wanted) => !sent.includes(wanted));
    if (missing) return `${path}: the thinking block before tool_use "${block.id}" is missing`;
  }
  return null;
}

function thinkingNotLast({ messages }) {
  const { role, content } = messages.at(-1);
  if (role !== 'assistant' || !Array.isArray(content)) return null;
  const { type } = content.at(-1);
  if (type !== 'thinking' && type !== 'redacted_thinking') return null;
  return `messages.${messages.length - 1}: the final block of the final assistant message must not be ${type}`;
}

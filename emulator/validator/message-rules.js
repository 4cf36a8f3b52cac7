import { allBlocks, blocksAt, blocksOfType, isBlank, isObject, messageBlocks } from './walk.js';

const USER_BLOCKS = new Set(['text', 'image', 'document', 'search_result', 'tool_result']);
const ASSISTANT_BLOCKS = new Set(['text', 'thinking', 'redacted_thinking', 'tool_use']);
/** Blocks of tools that run at the provider; they may stand in an assistant message. */
const SERVER_BLOCK = /^(server_tool_use|mcp_tool_use|container_upload|[a-z_]+_tool_result)$/;

/** Rules about roles, order and content of messages. */
export const messageRules = {
  'messages-present': ({ messages }) =>
    Array.isArray(messages) && messages.length > 0 ? null : 'messages must be a non-empty list',
  'message-role': messageRole,
  'first-message': firstMessage,
  'roles-alternate': rolesAlternate,
  'content-present': contentPresent,
  'block-shape': blockShape,
  'first-not-result': firstNotResult,
  'empty-text': emptyText,
  'last-message': lastMessage,
};

function messageRole({ messages }) {
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) return `messages.${index} must be an object`;
    if (message.role === 'user' || message.role === 'assistant') continue;
    return `messages.${index}.role must be "user" or "assistant", not ${JSON.stringify(message.role)}`;
  }
  return null;
}

function firstMessage({ messages }) {
  return messages[0].role === 'user' ? null : 'messages.0.role must be "user"';
}

function rolesAlternate({ messages }) {
  const index = messages.findIndex(({ role }, at) => at > 0 && role === messages[at - 1].role);
  return index < 0 ? null : `messages.${index}.role repeats "${messages[index].role}"`;
}

function contentPresent({ messages }) {
  for (const [index, { content }] of messages.entries()) {
    const filled = (typeof content === 'string' || Array.isArray(content)) && content.length > 0;
    if (!filled) return `messages.${index}.content must be a non-empty string or list`;
  }
  return null;
}

function blockShape(request) {
  for (const { block, path, role } of messageBlocks(request)) {
    if (!isObject(block) || typeof block.type !== 'string') return `${path} must have a type`;
    if (!mayStandIn(role, block.type)) {
      return `${path}.type "${block.type}" is not allowed in a message of role ${role}`;
    }
    const problem = SHAPES[block.type]?.(block);
    if (problem) return `${path}${problem}`;
  }
  return null;
}

function mayStandIn(role, type) {
  if (role === 'user') return USER_BLOCKS.has(type);
  return ASSISTANT_BLOCKS.has(type) || SERVER_BLOCK.test(type);
}

const SHAPES = {
  text: ({ text }) => (typeof text === 'string' ? null : '.text must be a string'),
  thinking: ({ thinking }) => (typeof thinking === 'string' ? null : '.thinking must be a string'),
  tool_use: ({ id, name }) => {
    if (typeof id !== 'string' || !/^[a-zA-Z0-9_-]+$/.test(id)) return '.id must be an id';
    return typeof name === 'string' && name !== '' ? null : '.name must be a non-empty string';
  },
  tool_result: (block) => {
    if (typeof block.tool_use_id !== 'string') return '.tool_use_id must be a string';
    if (block.is_error !== undefined && typeof block.is_error !== 'boolean') {
      return '.is_error must be a boolean';
    }
    return resultContentShape(block.content);
  },
};

function resultContentShape(content) {
  if (content === undefined || typeof content === 'string') return null;
  if (!Array.isArray(content)) return '.content must be a string or a list of blocks';
  for (const { block, path } of blocksAt(content, '.content')) {
    if (!['text', 'image', 'document', 'search_result'].includes(block?.type)) {
      return `${path}.type is not allowed inside a tool result`;
    }
    if (block.type === 'text' && typeof block.text !== 'string') {
      return `${path}.text must be a string`;
    }
  }
  return null;
}

function firstNotResult({ messages }) {
  const { content } = messages[0];
  const bare = Array.isArray(content) && content.every(({ type }) => type === 'tool_result');
  return bare ? 'messages.0 must not be a bare tool_result' : null;
}

function emptyText(request) {
  if (isBlank(request.system)) return 'system is empty';
  for (const [index, { content }] of request.messages.entries()) {
    if (isBlank(content)) return `messages.${index}.content is blank`;
  }
  for (const { block, path } of allBlocks(request)) {
    if (block.type === 'text' && isBlank(block.text)) return `${path}.text is empty or blank`;
    if (block.type === 'tool_result' && isBlank(block.content)) {
      return `${path}.content is blank (leave it out, or send an empty list)`;
    }
  }
  return null;
}

/** An assistant message may come last only to continue a paused answer. */
function lastMessage({ messages }) {
  const index = messages.length - 1;
  if (messages[index].role === 'user') return null;
  const [open] = blocksOfType(messages, index, 'tool_use');
  return open ? `${open.path}: the last message leaves tool_use "${open.block.id}" open` : null;
}

import { messageRules } from '../message-rules.js';
import { blocksAt, isBlank, isObject } from '../walk.js';

const ROLES = ['system', 'user', 'assistant', 'tool'];

/** Rules about roles, order and content of messages. */
export const chatMessageRules = {
  'messages-present': messageRules['messages-present'],
  'message-role': messageRole,
  'system-first': systemFirst,
  'user-present': userPresent,
  'content-present': contentPresent,
  'part-shape': partShape,
  'empty-text': emptyText,
};

function messageRole({ messages }) {
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) return `messages.${index} must be an object`;
    if (ROLES.includes(message.role)) continue;
    const role = JSON.stringify(message.role);
    return `messages.${index}.role must be one of ${ROLES.join(', ')}, not ${role}`;
  }
  return null;
}

function systemFirst({ messages }) {
  const late = messages.findIndex(({ role }, index) => index > 0 && role === 'system');
  return late < 0 ? null : `messages.${late}.role "system" is allowed only in messages.0`;
}

function userPresent({ messages }) {
  return messages.some(({ role }) => role === 'user') ? null : 'messages have no user message';
}

function contentPresent({ messages }) {
  for (const [index, message] of messages.entries()) {
    const problem = CONTENT[message.role](message);
    if (problem) return `messages.${index}.content ${problem}`;
  }
  return null;
}

const text = ({ content }) => (typeof content === 'string' ? null : 'must be a string');

const CONTENT = {
  system: text,
  tool: text,
  user: ({ content }) =>
    typeof content === 'string' || (Array.isArray(content) && content.length > 0)
      ? null
      : 'must be a string or a non-empty list of parts',
  assistant: ({ content, tool_calls: calls }) => {
    if (typeof content === 'string') return null;
    if (content != null) return 'must be a string or null';
    return calls === undefined ? 'may be null only beside tool_calls' : null;
  },
};

/** Only user messages have parts. */
function* parts({ messages }) {
  for (const [index, { content }] of messages.entries()) {
    yield* blocksAt(content, `messages.${index}.content`);
  }
}

function partShape(request) {
  for (const { block, path } of parts(request)) {
    if (!isObject(block)) return `${path} must be an object`;
    if (!Object.hasOwn(SHAPES, block.type)) return `${path}.type must be "text" or "image_url"`;
    const problem = SHAPES[block.type](block);
    if (problem) return `${path}${problem}`;
  }
  return null;
}

const IMAGE_URL =
  /^(?:https?:\/\/.|data:image\/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/]+={0,2}$)/;

const SHAPES = {
  text: (part) => (typeof part.text === 'string' ? null : '.text must be a string'),
  image_url: ({ image_url: image }) =>
    typeof image?.url === 'string' && IMAGE_URL.test(image.url)
      ? null
      : '.image_url.url must be an HTTP address or a data: URL with base64',
};

function emptyText(request) {
  for (const [index, { content }] of request.messages.entries()) {
    if (isBlank(content)) return `messages.${index}.content is empty or blank`;
  }
  for (const { block, path } of parts(request)) {
    if (isBlank(block.text)) return `${path}.text is empty or blank`;
  }
  return null;
}

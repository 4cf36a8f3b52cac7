/**
 * Whether a value is a plain JSON object.
 *
 * @param {unknown} value
 * @returns {boolean}
 */
export function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/**
 * Whether a value is text without anything to read in it.
 *
 * @param {unknown} value
 * @returns {boolean}
 */
export function isBlank(value) {
  return typeof value === 'string' && value.trim() === '';
}

/**
 * The content of a message or of a tool result as blocks with their paths; a string yields none.
 *
 * @param {unknown} content
 * @param {string} path
 * @returns {{ block: object, path: string }[]}
 */
export function blocksAt(content, path) {
  if (!Array.isArray(content)) return [];
  return content.map((block, index) => ({ block, path: `${path}.${index}` }));
}

/**
 * All blocks of all messages, with the path, index and role of their message.
 *
 * @param {object} request
 * @returns {Generator<{ block: object, path: string, index: number, role: string, last: boolean }>}
 */
export function* messageBlocks({ messages }) {
  for (const [index, { role, content }] of messages.entries()) {
    const blocks = blocksAt(content, `messages.${index}.content`);
    for (const [position, { block, path }] of blocks.entries()) {
      yield { block, path, index, role, last: position === blocks.length - 1 };
    }
  }
}

/**
 * All blocks that hold text for the model: system, messages, and inside tool results.
 *
 * @param {object} request
 * @returns {Generator<{ block: object, path: string }>}
 */
export function* allBlocks(request) {
  yield* blocksAt(request.system, 'system');
  for (const { block, path } of messageBlocks(request)) {
    yield { block, path };
    if (block.type === 'tool_result') yield* blocksAt(block.content, `${path}.content`);
  }
}

/**
 * Blocks of one type in one message.
 *
 * @param {object[]} messages
 * @param {number} index
 * @param {string} type
 * @returns {{ block: object, path: string }[]}
 */
export function blocksOfType(messages, index, type) {
  const content = messages[index]?.content;
  return blocksAt(content, `messages.${index}.content`).filter(({ block }) => block.type === type);
}

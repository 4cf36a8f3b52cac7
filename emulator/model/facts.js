/**
 * @typedef {object} Facts
 * @property {string} user text of the last user message that has text
 * @property {string} toolResult joined text of the results in the last message
 * @property {boolean} hasToolResult whether the last message carries tool results
 * @property {boolean} toolFailed whether one of these results is an error
 * @property {string} tool name of the first answered tool ('' without results)
 * @property {string[]} tools names of all answered tools
 * @property {string} system joined system text
 * @property {string} model
 * @property {number} turn number of assistant messages in the request
 * @property {string[]} offered names of the tools that the request offers
 */

/**
 * Reads what rules look at out of a request. The request must have passed the validator.
 *
 * @param {object} request in the form of the Messages API
 * @returns {Facts}
 */
export function readFacts(request) {
  const { messages } = request;
  const results = toBlocks(messages.at(-1).content).filter(({ type }) => type === 'tool_result');
  const tools = results.map((result) => toolNameOf(messages.at(-2), result.tool_use_id));
  return {
    user: lastUserText(messages),
    toolResult: results.map(({ content }) => blocksText(content)).join('\n'),
    hasToolResult: results.length > 0,
    toolFailed: results.some(({ is_error: failed }) => failed === true),
    tool: tools[0] ?? '',
    tools,
    system: blocksText(request.system),
    model: request.model,
    turn: messages.filter(({ role }) => role === 'assistant').length,
    offered: (request.tools ?? []).map(({ name }) => name),
  };
}

/**
 * The texts that the user wrote, one entry a message. Blocks that a kernel put in (environment
 * facts, memory files) are wrapped in `<system-reminder>` and left out unless nothing else is there.
 *
 * @param {object[]} messages
 * @returns {string[]}
 */
export function userTexts(messages) {
  return messages.filter(({ role }) => role === 'user').flatMap(({ content }) => ownText(content));
}

function lastUserText(messages) {
  return userTexts(messages).at(-1) ?? '';
}

function ownText(content) {
  const texts = toBlocks(content)
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text);
  const own = texts.filter((text) => !text.trimStart().startsWith('<system-reminder>'));
  const chosen = own.length > 0 ? own : texts;
  return chosen.length > 0 ? [chosen.join('\n')] : [];
}

function toolNameOf(message, id) {
  const call = toBlocks(message?.content ?? []).find(
    (block) => block.type === 'tool_use' && block.id === id,
  );
  return call?.name ?? '';
}

function toBlocks(content) {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content;
}

function blocksText(content) {
  return toBlocks(content ?? [])
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join('\n');
}

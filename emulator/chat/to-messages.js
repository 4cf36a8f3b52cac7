import { parseOr } from '../model/json.js';

/**
 * A chat completions request in the form of the Messages API, which is what rules look at.
 *
 * @param {object} body of a valid chat completions request
 * @returns {object}
 */
export function toMessagesRequest({ messages, tools, ...more }) {
  const system = messages.filter(({ role }) => role === 'system').map(({ content }) => content);
  return {
    ...more,
    ...(system.length > 0 && { system: system.join('\n') }),
    messages: turns(messages).map(toMessage),
    ...(tools && { tools: tools.map(toTool) }),
  };
}

/** Neighbours that are no assistant messages form one turn: results and what the user adds. */
function turns(messages) {
  const all = [];
  for (const message of messages) {
    if (message.role === 'system') continue;
    const last = all.at(-1);
    if (last && !isAssistant(last[0]) && !isAssistant(message)) last.push(message);
    else all.push([message]);
  }
  return all;
}

function isAssistant({ role }) {
  return role === 'assistant';
}

function toMessage(turn) {
  if (isAssistant(turn[0])) return { role: 'assistant', content: answerBlocks(turn[0]) };
  const single = turn.length === 1 && turn[0].role === 'user' && typeof turn[0].content;
  return {
    role: 'user',
    content: single === 'string' ? turn[0].content : turn.flatMap(userBlocks),
  };
}

function answerBlocks({ content, tool_calls: calls }) {
  return [
    ...textBlocks(content),
    ...(calls ?? []).map(({ id, function: { name, arguments: text } }) => ({
      type: 'tool_use',
      id,
      name,
      input: parseOr(text, {}),
    })),
  ];
}

function userBlocks({ role, content, tool_call_id: id }) {
  if (role === 'tool') return [{ type: 'tool_result', tool_use_id: id, content }];
  return Array.isArray(content) ? content.map(toBlock) : textBlocks(content);
}

function textBlocks(text) {
  return text ? [{ type: 'text', text }] : [];
}

function toBlock(part) {
  if (part.type !== 'image_url') return part;
  const { url } = part.image_url;
  const inline = /^data:([^;,]+);base64,(.*)$/s.exec(url);
  const source = inline
    ? { type: 'base64', media_type: inline[1], data: inline[2] }
    : { type: 'url', url };
  return { type: 'image', source };
}

function toTool({ function: { name, description, parameters } }) {
  return { name, description, input_schema: parameters };
}

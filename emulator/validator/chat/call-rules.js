import { parseOr } from '../../model/json.js';
import { pairingRules, uniqueIds } from '../pairing-rules.js';
import { isObject } from '../walk.js';

const CALL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Rules about tool calls and the tool messages that belong to them. */
export const chatCallRules = {
  'calls-shape': callsShape,
  'call-name': callName,
  'call-arguments': callArguments,
  'call-ids-unique': ({ messages }) => uniqueIds(allCalls(messages)),
  ...pairingRules(rounds),
};

function callsShape({ messages }) {
  for (const [index, { role, tool_calls: calls }] of messages.entries()) {
    if (calls === undefined) continue;
    const path = `messages.${index}.tool_calls`;
    if (role !== 'assistant') return `${path} is not allowed in a message of role ${role}`;
    if (!Array.isArray(calls) || calls.length === 0) return `${path} must be a non-empty list`;
    for (const [at, call] of calls.entries()) {
      const problem = callShape(call);
      if (problem) return `${path}.${at}${problem}`;
    }
  }
  return null;
}

function callShape(call) {
  if (!isObject(call)) return ' must be an object';
  if (typeof call.id !== 'string' || call.id === '') return '.id must be a non-empty string';
  if (call.type !== 'function') return '.type must be "function"';
  return isObject(call.function) ? null : '.function must be an object';
}

function callName({ messages }) {
  for (const { path, name } of allCalls(messages)) {
    if (typeof name === 'string' && CALL_NAME.test(name)) continue;
    return `${path}.function.name ${JSON.stringify(name)} must match ${CALL_NAME.source}`;
  }
  return null;
}

function callArguments({ messages }) {
  for (const { path, text } of allCalls(messages)) {
    if (typeof text === 'string' && isObject(parseOr(text, null))) continue;
    return `${path}.function.arguments must be the JSON text of an object`;
  }
  return null;
}

function allCalls(messages) {
  return messages.flatMap(callsOf);
}

function callsOf({ tool_calls: calls = [] }, index) {
  return calls.map(({ id, function: { name, arguments: text } }, at) => ({
    id,
    name,
    text,
    path: `messages.${index}.tool_calls.${at}`,
  }));
}

/** A message that is no tool message begins a round; the tool messages that follow belong to it. */
function rounds({ messages }) {
  const all = [{ calls: [], results: [], place: 'messages.0' }];
  for (const [index, message] of messages.entries()) {
    if (message.role === 'tool') {
      all.at(-1).results.push({ id: message.tool_call_id, path: `messages.${index}` });
    } else {
      const calls = callsOf(message, index);
      all.push({ calls, results: [], place: `messages.${index + 1}` });
    }
  }
  return all;
}

/**
 * Helpers of the tests of tools that are answered outside of the run.
 *
 * @module
 */
import assert from 'node:assert/strict';

import { toolCalls } from '../../emulator/index.js';
import { collect } from './boundary.js';
import { errorsOf } from './gateway-elements.js';

/** A tool that the reader of the stream answers. */
export function clientTool(name, more = {}) {
  const parameters = { type: 'object', properties: { city: { type: 'string' } } };
  return { name, description: `The tool ${name}`, parameters, ...more };
}

/** Rules of a model that calls tools once and then repeats their results. */
export function callsThenRepeats(...names) {
  const calls = names.map((name, at) => ({ id: `toolu_${at + 1}`, name, input: { city: name } }));
  return [
    { when: { hasToolResult: true }, reply: 'Results: {{toolResult}}' },
    { reply: toolCalls(calls) },
  ];
}

/** Calls that a stream said are open, in the format `'acp'`: `[id, tool, repeated]`. */
export function openIn(elements) {
  return elements
    .filter(({ sessionUpdate }) => sessionUpdate === 'tool_confirm')
    .map(({ toolCallId, toolName, _meta }) => [toolCallId, toolName, _meta.oak.repeated === true]);
}

/** Answers a call and reads the whole stream. */
export function answer(session, toolUseId, output, more) {
  return collect(session.respondToolUse({ toolUseId, output, ...more }));
}

/** Checks that a stream told one error, with the code, and then ended. */
export function assertError(elements, code, message) {
  const errors = errorsOf(elements);
  assert.deepEqual(
    errors.map((error) => error.code),
    [code],
  );
  if (message) assert.equal(errors[0].message, message);
  assert.equal(elements.at(-1).stopReason, 'error');
}

export const RESOLVED = 'Client tool result has already been resolved';
export const NOT_PENDING = 'No pending client tool found';

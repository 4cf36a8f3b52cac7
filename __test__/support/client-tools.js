/**
 * Helpers of the tests of tools that are answered outside of the run.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { toolCalls } from '../../emulator/index.js';
import { collect } from './boundary.js';
import { errorsOf } from './gateway-elements.js';

const PROGRAM = fileURLToPath(new URL('client-process.js', import.meta.url));

/**
 * Runs a process that sends a prompt and answers calls; gives what its streams told.
 *
 * @param {{ config: object, conversationId: string, prompt?: string, answers?: object[], tools: string[] }} input
 * @param {Record<string, string>} [env]
 * @returns {Promise<{ signal: string | null, elements: object[] }>}
 */
export async function inProcess(input, env = {}) {
  const stdio = ['ignore', 'pipe', 'inherit'];
  const options = { stdio, env: { ...process.env, ...env } };
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(input)], options);
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
  const [code, signal] = await new Promise((resolve) => {
    child.once('close', (...end) => resolve(end));
  });
  assert.ok(code === 0 || signal === 'SIGKILL', `it ended with ${code ?? signal}: ${out}`);
  const lines = out.split('\n').filter(Boolean);
  return { signal, elements: lines.map((line) => JSON.parse(line)) };
}

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

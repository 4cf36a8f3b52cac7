/**
 * Helpers of the tests of the border between the core and JavaScript programs.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import { createAgent } from '../../index.js';
import { startEmulator } from '../../emulator/index.js';

/** Address of the entry of the package, for scripts in child processes and workers. */
export const ENTRY = new URL('../../index.js', import.meta.url).href;
/** The same for the emulator. */
export const EMULATOR = new URL('../../emulator/index.js', import.meta.url).href;

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CHILD_TIME_MS = 120_000;

/**
 * Starts an emulator and an agent that talks to it; both are closed when the test ends, which fails
 * if the gateway saw an invalid request.
 *
 * @param {import('node:test').TestContext} t
 * @param {object} [options] `rules`, `knobs` of the emulator; the rest is configuration
 */
export async function setUp(t, { rules = [{ reply: 'Hello.' }], knobs, ...config } = {}) {
  const emulator = await startEmulator({ rules, knobs });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  const agent = createAgent({ ...configFor(emulator), ...config });
  t.after(() => agent.close());
  const session = await agent.startSession({ userId: 'ann' });
  return { emulator, agent, session };
}

/** The least configuration for an emulator. */
export function configFor(emulator) {
  return {
    envId: 'test-env',
    model: { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey },
  };
}

/** A valid configuration of an agent that sends nothing. */
export function offline(config) {
  return { envId: 'test-env', model: { id: 'glm', apiKey: 'k' }, ...config };
}

/** The same with a gateway that nobody listens at, so that a wrong request fails at once. */
export function nowhere(config) {
  const model = { id: 'glm', apiKey: 'k', apiBaseUrl: 'http://127.0.0.1:1', maxRetries: 0 };
  return offline({ model, ...config });
}

/** A tool with the name, which answers with the value or with what the function gives. */
export function tool(name, execute = () => 'done', more = {}) {
  return { name, description: name, parameters: { type: 'object' }, execute, ...more };
}

/** All elements of a stream. */
export async function collect(stream) {
  const elements = [];
  for await (const element of stream) elements.push(element);
  return elements;
}

/** Reads a stream up to the first element that passes, which it returns. */
export async function until(stream, test) {
  for (;;) {
    const { value, done } = await stream.next();
    assert.equal(done, false, 'the stream ended before the element came');
    if (test(value)) return value;
  }
}

/** Tests for elements. */
export const isText = ({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk';
export const isIdle = ({ phase }) => phase === 'idle';

/** The text of all chunks. */
export function textOf(elements) {
  return elements
    .filter(isText)
    .map(({ content }) => content.text)
    .join('');
}

/** Checks that a stream ended as it must: idle once, last, with the fields. */
export function assertEnd(elements, fields) {
  assert.equal(elements.filter(isIdle).length, 1);
  const idle = elements.at(-1);
  assert.equal(idle.phase, 'idle');
  for (const [key, value] of Object.entries(fields)) assert.equal(idle[key], value, key);
  if (fields.stopReason !== 'error') {
    const isError = ({ sessionUpdate, level }) => sessionUpdate === 'log' && level === 'error';
    assert.deepEqual(elements.filter(isError), []);
  }
}

/** A promise and its functions. */
export function deferred() {
  let resolve;
  let reject;
  const promise = new Promise((...functions) => ([resolve, reject] = functions));
  return { promise, resolve, reject };
}

/** Waits until a condition holds; there is no event to wait for. */
export async function eventually(condition, what, ms = 30_000) {
  const end = performance.now() + ms;
  while (!(await condition())) {
    assert.ok(performance.now() < end, `not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The error that a function throws or rejects with. */
export async function errorOf(work) {
  try {
    await (typeof work === 'function' ? work() : work);
  } catch (error) {
    return error;
  }
  throw new assert.AssertionError({ message: 'it must fail' });
}

/** Checks a refusal: class, code, a message that has the words, or matches. */
export function assertRefused(error, Class, code, ...words) {
  assert.ok(error instanceof Class, `${Class.name} expected, not ${error?.stack}`);
  assert.equal(error.code, code);
  for (const word of words) {
    if (word instanceof RegExp) assert.match(error.message, word);
    else assert.ok(error.message.includes(word), `"${word}" is not in: ${error.message}`);
  }
}

/**
 * Runs a module in a process of its own, with nothing of the environment but what programs need.
 *
 * @param {string} source
 * @param {{ env?: Record<string, string>, flags?: string[], args?: string[] }} [options]
 * @returns {Promise<{ code: number | null, signal: string | null, out: string, err: string }>}
 */
export function runModule(source, { env = {}, flags = [], args = [] } = {}) {
  const child = spawn(
    process.execPath,
    ['--unhandled-rejections=strict', ...flags, '--input-type=module', '-', ...args],
    {
      cwd: ROOT,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
      timeout: CHILD_TIME_MS,
      killSignal: 'SIGKILL',
    },
  );
  let out = '';
  let err = '';
  child.stdout.setEncoding('utf8').on('data', (text) => (out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (err += text));
  child.stdin.end(source);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, out, err }));
  });
}

/** The same for a module that must end by itself, with code 0 and without a word on stderr. */
export async function runClean(source, options) {
  const { code, signal, out, err } = await runModule(source, options);
  assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' }, out);
  return out.trim();
}

/**
 * An agent that talks to the emulator, for one test.
 *
 * @module
 */
import assert from 'node:assert/strict';

import { startEmulator } from '../../emulator/index.js';
import { createAgent } from '../../index.js';
import { readStream } from './gateway-elements.js';

/** A wait that a reply asks for: retries of tests are fast. */
export const SOON = { 'retry-after-ms': '1' };

/**
 * Starts an emulator and an agent that uses it. When the test ends both are closed, and the test
 * fails if the agent ever sent an invalid request or left a stream open.
 *
 * @param {import('node:test').TestContext} t
 * @param {object} options
 * @param {object[] | string | Function} options.rules script; anything but a list is the one reply
 * @param {object} [options.knobs] network behaviour of every answer
 * @param {string[]} [options.violations] rules that the test breaks on purpose
 * @param {object} [options.model] fields of `config.model`
 * @param {object} [options.config] further fields of the agent's configuration
 */
export async function gatewayFor(t, { rules, knobs, violations = [], model, ...config }) {
  const script = Array.isArray(rules) ? rules : [{ reply: rules }];
  const emulator = await startEmulator({ rules: script, knobs });
  const agent = createAgent({
    envId: 'test-env',
    model: { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey, ...model },
    ...config,
  });
  t.after(async () => {
    try {
      await agent.close();
      await emulator.idle();
      assert.deepEqual(
        emulator.violations.map(({ rule, message }) =>
          violations.includes(rule) ? rule : message,
        ),
        violations,
        'the gateway accepted every request',
      );
    } finally {
      await emulator.close();
    }
  });
  const session = await agent.startSession({ userId: 'ann' });
  return {
    emulator,
    agent,
    session,
    /** Sends and reads the whole stream. */
    send: (input, options) => readStream(session.send(input, options)),
    /** The messages of a request. */
    messages: (at) => emulator.requests.at(at).body.messages,
  };
}

/**
 * A tool for tests.
 *
 * @param {string} name
 * @param {Function} execute
 * @param {object} [more] further fields
 */
export function tool(name, execute, more = {}) {
  const parameters = { type: 'object', properties: {} };
  return { name, description: `The tool ${name}`, parameters, execute, ...more };
}

/** A promise for the moment when the signal fires. */
export function aborted(signal) {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** A message of a request without its cache marks. */
export function unmarked(value) {
  return JSON.parse(
    JSON.stringify(value, (key, item) => (key === 'cache_control' ? undefined : item)),
  );
}

/** The results in a message, as `[id, text, isError]`. */
export function resultsIn({ content }) {
  return content
    .filter(({ type }) => type === 'tool_result')
    .map(({ tool_use_id: id, content: text, is_error: isError }) => [id, text, isError === true]);
}

/** The joined text of a message. */
export function textIn({ content }) {
  return content.map(({ text }) => text ?? '').join('');
}

/**
 * An emulator in this process for programs in other processes.
 *
 * @module
 */
import assert from 'node:assert/strict';

import { startEmulator, toolCall } from '../../emulator/index.js';
import { ENTRY, runModule } from './boundary.js';

const RULES = [
  { when: { hasToolResult: true }, reply: 'I found {{toolResult}}.' },
  { when: { user: 'hold' }, reply: { text: ['a', 'b'], knobs: { stallAfter: 3 } } },
  { when: { user: 'call' }, reply: toolCall('look', {}) },
  { reply: 'Hello.' },
];

/**
 * @param {import('node:test').TestContext} t
 * @param {object[]} [rules]
 */
export async function gatewayFor(t, rules = RULES) {
  const emulator = await startEmulator({ rules });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  return emulator;
}

/** The first lines of a program: an agent with tools and hooks. */
export function preamble(emulator) {
  return `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const model = {
      id: 'glm',
      apiBaseUrl: ${JSON.stringify(emulator.gatewayUrl)},
      apiKey: ${JSON.stringify(emulator.apiKey)},
    };
    const look = {
      name: 'look', description: 'd', parameters: { type: 'object' }, execute: async () => 42,
    };
    const hooks = {
      onSessionStart() {}, onUserMessage() {}, onToolStart() {}, onToolEnd() {},
      onAgentMessage() {}, onSessionEnd() {},
    };
    const config = { envId: 'e', model, tools: [look], hooks };
    const agent = createAgent(config);
    const session = await agent.startSession({ userId: 'u' });
  `;
}

/** Runs a program after the preamble; gives the result and how long the process lived. */
export async function runProgram(emulator, source, options) {
  const start = performance.now();
  const result = await runModule(`${preamble(emulator)}${source}`, options);
  return { ...result, ms: performance.now() - start };
}

/** Children of the addon and children of `node:child_process` do not disturb each other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMULATOR, ENTRY, runClean } from './support/boundary.js';

const CHILDREN = 200;

/**
 * A program that starts as many servers that end at once, each with its own exit status, and as many
 * children of its own; it says what it saw of both.
 */
function program(first) {
  const ours = `
    const { createAgent } = await import(${JSON.stringify(ENTRY)});
    const { startEmulator } = await import(${JSON.stringify(EMULATOR)});
  `;
  const theirs = `const { spawn } = await import('node:child_process');
    await new Promise((resolve) => spawn('true').on('close', resolve));
  `;
  return `
    ${first === 'addon' ? ours + theirs : theirs + ours}
    const numbers = Array.from({ length: ${CHILDREN} }, (_, at) => at);
    const emulator = await startEmulator({ rules: [{ reply: 'Hello.' }] });
    const mcpServers = Object.fromEntries(numbers.map((at) => [
      's' + at, { command: '/bin/sh', args: ['-c', 'exit ' + (at % 100 + 1)], alwaysLoad: true },
    ]));
    const agent = createAgent({
      envId: 'e', mcpServers,
      model: { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey },
    });
    const session = await agent.startSession({ userId: 'u' });
    const logs = [];
    const run = (async () => {
      for await (const { sessionUpdate, message } of session.send('go')) {
        if (sessionUpdate === 'log') logs.push(message);
      }
    })();
    const own = await Promise.all(numbers.map((at) => new Promise((resolve, reject) => {
      const child = spawn('/bin/sh', ['-c', 'exit ' + (at % 100 + 1)], { stdio: 'ignore' });
      child.on('error', reject).on('exit', (code) => resolve(code === at % 100 + 1));
    })));
    await run;
    const seen = numbers.filter((at) => logs.some((log) =>
      log.includes('s' + at) && new RegExp('\\\\b' + (at % 100 + 1) + '\\\\b').test(log)));
    console.log(own.filter(Boolean).length, seen.length);
    await agent.close();
    await emulator.close();
  `;
}

for (const first of ['addon', 'node:child_process']) {
  test(`${CHILDREN} children of each kind at once, ${first} first: every exit is seen`, async () => {
    assert.equal(await runClean(program(first)), `${CHILDREN} ${CHILDREN}`);
  });
}

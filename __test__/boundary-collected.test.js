/** What nothing in JavaScript refers to any more, but the core waits for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMULATOR, ENTRY, runClean } from './support/boundary.js';

test('a tool that never settles runs until it is stopped, whatever the garbage collector does', async () => {
  const out = await runClean(
    `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    import { startEmulator } from ${JSON.stringify(EMULATOR)};
    const emulator = await startEmulator({
      rules: [{ times: 1, reply: { toolCalls: [{ name: 'wait', input: {} }] } }, { reply: 'ok' }],
    });
    let started;
    const running = new Promise((resolve) => (started = resolve));
    const wait = {
      name: 'wait', description: 'waits', parameters: { type: 'object' },
      execute: () => (started(), new Promise(() => {})),
    };
    const agent = createAgent({
      envId: 'e', tools: [wait],
      model: { id: 'm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey },
    });
    const session = await agent.startSession({ userId: 'ann' });
    const ended = session.prompt('go');
    await running;
    for (let round = 0; round < 5; round += 1) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      globalThis.gc();
    }
    await session.abort();
    const { stopReason } = await ended;
    await session.prompt('on');
    const [, , { content }] = emulator.requests.at(-1).body.messages;
    console.log(stopReason, JSON.stringify(content));
    await agent.close();
    await emulator.close();
    `,
    { flags: ['--expose-gc'] },
  );
  assert.match(out, /^aborted .*interrupted while it ran/);
});

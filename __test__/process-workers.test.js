/** FC-G7: worker threads that load the addon, run turns and are terminated. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ENTRY, eventually, runModule } from './support/boundary.js';
import { gatewayFor } from './support/boundary-gateway.js';

/** What a worker does: one turn, or a turn that never ends. */
const WORKER = `
  import { parentPort, workerData } from 'node:worker_threads';
  import * as oak from ${JSON.stringify(ENTRY)};
  const { model, input } = workerData;
  const look = {
    name: 'look', description: 'd', parameters: { type: 'object' },
    execute: () => {
      parentPort.postMessage('tool');
      return input === 'call and wait' ? new Promise(() => {}) : 42;
    },
  };
  // No await at the top: V8 aborts the process when a thread ends while it evaluates such a module.
  async function main() {
    const agent = oak.createAgent({ envId: 'e', model, tools: [look], hooks: { onToolEnd() {} } });
    const session = await agent.startSession({ userId: 'u' });
    for await (const { content, phase } of session.send(input)) {
      if (content?.text) parentPort.postMessage('text');
      if (phase === 'idle') parentPort.postMessage('idle');
    }
    try {
      oak.createAgent({});
    } catch (error) {
      const isOne = error instanceof oak.InvalidConfigError && error instanceof Error;
      parentPort.postMessage(isOne && error.code === 'E_INVALID_CONFIG' ? 'class' : 'wrong class');
    }
    await session.send('').next().catch((error) =>
      parentPort.postMessage(error instanceof oak.KernelError ? 'async class' : 'wrong class'));
  }
  main();
`;

/** A program with functions for workers; the addon is loaded only where the source says so. */
function program(emulator, source) {
  const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey };
  return `
    import { once } from 'node:events';
    import { Worker } from 'node:worker_threads';
    const model = ${JSON.stringify(model)};
    const url = new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(WORKER)}`)});
    const start = (input) => new Worker(url, { workerData: { model, input } });
    const says = (worker, word) => new Promise((resolve, reject) => {
      worker.on('error', reject);
      worker.on('message', (said) => said === word && resolve());
    });
    const exit = async (worker) => (await once(worker, 'exit'))[0];
    ${source}
  `;
}

async function ends(emulator, source) {
  const { code, signal, err, out } = await runModule(program(emulator, source));
  assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' }, out);
  return out.trim();
}

test('FC-G7: load only in a worker, run a turn, let it end; 30 times', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const codes = [];
    for (let at = 0; at < 30; at += 1) codes.push(await exit(start('call')));
    console.log(codes.join(''));
  `;
  assert.equal(await ends(emulator, source), '0'.repeat(30));
  assert.equal(emulator.requests.length, 60);
});

for (const [name, input, word] of [
  ['mid-text', 'hold', 'text'],
  ['during a tool', 'call and wait', 'tool'],
  ['after the run', 'call', 'idle'],
]) {
  test(`FC-G7: a worker that is terminated ${name}, 30 times`, async (t) => {
    const emulator = await gatewayFor(t);
    const source = `
      for (let at = 0; at < 30; at += 1) {
        const worker = start(${JSON.stringify(input)});
        await says(worker, ${JSON.stringify(word)});
        await worker.terminate();
      }
      console.log('done');
    `;
    assert.equal(await ends(emulator, source), 'done');
    await eventually(() => emulator.openStreams() === 0, 'all connections are closed');
  });
}

test('FC-G7: workers that are terminated at any time', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    for (let at = 0; at < 30; at += 1) {
      const worker = start(at % 2 ? 'call' : 'hold');
      await new Promise((resolve) => setTimeout(resolve, at * 4));
      await worker.terminate();
    }
    console.log('done');
  `;
  assert.equal(await ends(emulator, source), 'done');
});

test('FC-G7: the main thread and workers at once', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const { createAgent } = await import(${JSON.stringify(ENTRY)});
    const agent = createAgent({ envId: 'e', model });
    const workers = Array.from({ length: 8 }, () => start('call'));
    const exits = workers.map(exit);
    const held = start('hold');
    const texts = await Promise.all([1, 2, 3, 4].map(() => agent.prompt('hi')));
    await says(held, 'text');
    await held.terminate();
    console.log((await Promise.all(exits)).join(''), texts.map(({ text }) => text).join(''));
    console.log((await agent.prompt('hi')).text);
  `;
  const out = await ends(emulator, source);
  assert.equal(out, `${'0'.repeat(8)} ${'Hello.'.repeat(4)}\nHello.`);
});

test('FC-G7: the main thread goes on when the worker that loaded first is gone', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    await exit(start('call'));
    const { createAgent } = await import(${JSON.stringify(ENTRY)});
    console.log((await createAgent({ envId: 'e', model }).prompt('hi')).text);
  `;
  assert.equal(await ends(emulator, source), 'Hello.');
});

test('FC-G7: errors in a worker are instances of the classes of that worker', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const worker = start('call');
    const said = [];
    worker.on('message', (word) => said.push(word));
    await exit(worker);
    console.log(said.join());
  `;
  assert.match(await ends(emulator, source), /idle,class,async class$/);
});

test('FC-G7: process.exit() while workers run is clean', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const workers = ['hold', 'hold', 'hold'].map(start);
    await Promise.all(workers.map((worker) => says(worker, 'text')));
    process.exit(6);
  `;
  const { code, signal, err } = await runModule(program(emulator, source));
  assert.deepEqual({ code, signal, err }, { code: 6, signal: null, err: '' });
});

/** FC-G6: a program ends by itself when its work is done, and not before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from './support/boundary.js';
import { gatewayFor, runProgram } from './support/boundary-gateway.js';

/** Far below every time limit of the kernel; a machine under load may be slow. */
const SOON_MS = 20_000;

/** Runs a program that must end by itself, cleanly and soon. */
async function ends(emulator, source, options) {
  const { code, signal, err, out, ms } = await runProgram(emulator, source, options);
  assert.deepEqual({ code, signal, err }, { code: 0, signal: null, err: '' });
  assert.ok(ms < SOON_MS, `${ms} ms`);
  return out.trim();
}

test('FC-G6: after a full run with tools and hooks', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    let last;
    for await (const element of session.send('call')) last = element;
    console.log(last.stopReason);
  `;
  assert.equal(await ends(emulator, source), 'end_turn');
});

test('FC-G6: an agent that did nothing, and a session that did nothing', async (t) => {
  const emulator = await gatewayFor(t);
  assert.equal(await ends(emulator, "console.log('made')"), 'made');
  assert.equal(emulator.requests.length, 0);
});

test('FC-G6: after prompt, after close, and after close of everything', async (t) => {
  const emulator = await gatewayFor(t);
  const text = "console.log((await session.prompt('call')).text);";
  for (const close of ['', 'await session.close();', 'await agent.close();']) {
    assert.equal(await ends(emulator, text + close), 'I found 42.');
  }
});

test('FC-G6: after break', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    for await (const { sessionUpdate } of session.send('hold')) {
      if (sessionUpdate === 'agent_message_chunk') break;
    }
    console.log('left');
  `;
  assert.equal(await ends(emulator, source), 'left');
  await emulator.idle();
});

test('FC-G6: a stream that was never read', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    globalThis.stream = session.send('hold');
    console.log('main is over');
  `;
  assert.equal(await ends(emulator, source), 'main is over');
  assert.equal(emulator.requests.length, 0);
});

test('FC-G6: a stream that was begun and abandoned does not hold the process', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    globalThis.stream = session.send('hold');
    for (;;) {
      const { value } = await stream.next();
      if (value.sessionUpdate === 'agent_message_chunk') break;
    }
    console.log('main is over');
  `;
  assert.equal(await ends(emulator, source), 'main is over');
  await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
});

test('FC-G6: during a run the process stays alive until the run is over', async (t) => {
  const text = Array.from({ length: 20 }, (_, at) => `${at} `);
  const emulator = await gatewayFor(t, [{ reply: { text, knobs: { chunkDelayMs: 25 } } }]);
  const source = `
    (async () => {
      let all = '';
      for await (const { content } of session.send('count')) all += content?.text ?? '';
      console.log(all);
    })();
    agent.prompt('hi').then(({ text }) => console.log(text));
  `;
  assert.equal(await ends(emulator, source), `${text.join('')}\n${text.join('')}`.trim());
});

test('FC-G6: a tool that takes its time is waited for', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    look.execute = () => 0;
    const slow = { ...look, execute: () => new Promise((r) => setTimeout(r, 300, 'late')) };
    const { text } = await createAgent({ ...config, tools: [slow] }).prompt('call');
    console.log(text);
  `;
  assert.equal(await ends(emulator, source), 'I found late.');
});

test('FC-G6: agents and sessions that are garbage do not hold the process', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    for (let at = 0; at < 50; at += 1) {
      const one = createAgent(config);
      await (await one.startSession({ userId: 'u' })).prompt('call');
    }
    gc();
    console.log('done');
  `;
  assert.equal(await ends(emulator, source, { flags: ['--expose-gc'] }), 'done');
});

test('FC-G4: a stream that was dropped and collected closes its connection', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const begin = async () => {
      const stream = session.send('hold');
      for (;;) {
        const { value } = await stream.next();
        if (value.sessionUpdate === 'agent_message_chunk') break;
      }
      return new WeakRef(stream);
    };
    const dropped = await begin();
    const keep = setInterval(() => gc(), 20);
    await session.settled();
    console.log('settled');
    clearInterval(keep);
    console.log((await agent.prompt('hi')).text, dropped.deref() === undefined);
    process.exit();
  `;
  const out = await ends(emulator, source, { flags: ['--expose-gc'] });
  assert.equal(out, 'settled\nHello. true');
  assert.equal(emulator.requests[0].aborted, true);
});

for (const [name, source] of [
  ['process.exit(0) during a run', 'stream.next(); await there; process.exit(0);'],
  ['process.exit(7) during a run', 'stream.next(); await there; process.exit(7);'],
  ['process.exitCode beside an abandoned run', 'stream.next(); await there; process.exitCode = 3;'],
]) {
  test(`${name}: the exit code is kept, nothing is printed`, async (t) => {
    const emulator = await gatewayFor(t);
    const before = `
      const stream = session.send('hold');
      const there = stream.next().then(() => stream.next());
    `;
    const { code, signal, err } = await runProgram(emulator, before + source);
    const expected = Number(/\d(?=[);])/.exec(source)[0]);
    assert.deepEqual({ code, signal, err }, { code: expected, signal: null, err: '' });
    await eventually(() => emulator.openStreams() === 0, 'the connection is closed');
  });
}

test('process.exit() inside a tool and inside a hook is clean', async (t) => {
  const emulator = await gatewayFor(t);
  for (const config of [
    '{ ...config, tools: [{ ...look, execute: () => process.exit(5) }] }',
    '{ ...config, hooks: { onUserMessage: () => process.exit(5) } }',
    '{ ...config, hooks: { onToolEnd: async () => process.exit(5) } }',
  ]) {
    const source = `await createAgent(${config}).prompt('call');`;
    const { code, signal, err } = await runProgram(emulator, source);
    assert.deepEqual({ code, signal, err }, { code: 5, signal: null, err: '' });
  }
});

test('200 sessions of one agent at once, each with a tool call', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const users = Array.from({ length: 200 }, (_, at) => 'u' + at);
    const texts = await Promise.all(users.map(async (userId) => {
      const own = await agent.startSession({ userId });
      let text = '';
      for await (const { content, phase, stopReason } of own.send('call')) {
        text += content?.text ?? '';
        if (phase === 'idle') text += stopReason;
      }
      return text;
    }));
    console.log(new Set(texts).size, texts[0]);
  `;
  assert.equal(await ends(emulator, source), '1 I found 42.end_turn');
  assert.equal(emulator.requests.length, 400);
});

test('sessions that are not closed are freed', async (t) => {
  const emulator = await gatewayFor(t);
  const source = `
    const grow = async (count) => {
      for (let at = 0; at < count; at += 1) {
        await (await agent.startSession({ userId: 'u' })).prompt('hi');
        if (at % 100 === 0) gc();
      }
      gc();
      return process.memoryUsage().rss;
    };
    await grow(100);
    const before = await grow(200);
    const after = await grow(600);
    console.log(Math.round((after - before) / 600));
  `;
  const perSession = Number(await ends(emulator, source, { flags: ['--expose-gc'] }));
  assert.ok(perSession < 50_000, `${perSession} bytes for each session`);
});

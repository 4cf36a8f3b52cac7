/** FC-G2: no rejection is left unhandled and nothing is printed, however a run is left. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EMULATOR, ENTRY, runClean } from './support/boundary.js';

/** A program around a scenario; `hold` rules keep the run where it is. */
const program = (rules, scenario) => `
  import { createAgent } from ${JSON.stringify(ENTRY)};
  import { startEmulator, toolCall, httpError } from ${JSON.stringify(EMULATOR)};
  const emulator = await startEmulator({ rules: [{ when: { user: 'again' }, reply: 'x' }, ${rules}] });
  const tools = [{
    name: 'slow', description: 'd', parameters: { type: 'object' },
    execute: (input, { signal }) => new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    }),
  }];
  const agent = createAgent({
    envId: 'e', tools,
    model: { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey },
  });
  const session = await agent.startSession({ userId: 'u' });
  const until = async (test) => { while (!(await test())) await new Promise((r) => setTimeout(r, 5)); };
  const there = () => until(() => emulator.requests.length === 1);
  ${scenario}
  await session.abort();
  await session.prompt('again');
  await agent.close();
  if (emulator.violations.length > 0) console.error(emulator.violations);
  await emulator.close();
  console.log('over');
`;

const HOLDS = {
  'before the headers': "{ reply: { text: 'x', knobs: { hangHeaders: true } } }",
  'mid-delta': "{ reply: { text: ['a', 'b'], knobs: { stallAfter: 3 } } }",
  'during a tool': "{ when: { hasToolResult: true }, reply: 'y' }, { reply: toolCall('slow', {}) }",
  'during a retry wait': "{ reply: httpError(529, undefined, { 'retry-after': '3600' }) }",
  'after the end': "{ reply: 'short' }",
};

const SCENARIOS = {
  'abort with nobody reading on': `
    const stream = session.send('hi');
    await stream.next();
    await there();
    await session.abort();`,
  'abort while a next is pending that nobody awaits': `
    const stream = session.send('hi');
    for (let at = 0; at < 40; at += 1) stream.next();
    await there();
    await session.abort();`,
  'abort twice, not awaited': `
    const stream = session.send('hi');
    stream.next();
    await there();
    session.abort();
    session.abort();`,
  'a signal, nobody awaits anything': `
    const controller = new AbortController();
    const stream = session.send('hi', { signal: controller.signal, throwOnError: true });
    stream.next();
    await there();
    controller.abort();
    stream.next();`,
  'return and throw that nobody awaits': `
    const stream = session.send('hi');
    stream.next();
    await there();
    stream.return();
    stream.throw(new Error('mine')).catch(() => {});`,
  'a time limit': `
    const stream = session.send('hi', { signal: AbortSignal.timeout(100) });
    for await (const element of stream);`,
};

for (const [place, rules] of Object.entries(HOLDS)) {
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    test(`FC-G2: ${name}: ${place}`, async () => {
      assert.equal(await runClean(program(rules, scenario)), 'over');
    });
  }
}

test('FC-G2: callbacks that throw in every way leave nothing unhandled', async () => {
  const source = `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    import { startEmulator, toolCalls } from ${JSON.stringify(EMULATOR)};
    const names = ['throws', 'rejects', 'later', 'odd', 'getter', 'thenable', 'json'];
    const calls = toolCalls(names.map((name) => ({ name, input: {} })));
    const emulator = await startEmulator({
      rules: [{ when: { hasToolResult: true }, reply: 'y' }, { reply: calls }],
    });
    const odd = new Proxy({}, { get() { throw new Error('no'); } });
    const execute = {
      throws() { throw new Error('a'); },
      async rejects() { throw null; },
      later: () => new Promise((resolve, reject) => setTimeout(reject, 1, Symbol('x'))),
      odd() { throw odd; },
      getter: () => ({ get x() { throw new Error('b'); } }),
      thenable: () => ({ then(resolve, reject) { reject(new Error('c')); reject(1); resolve(2); } }),
      json: () => ({ toJSON() { throw odd; } }),
    };
    const tools = names.map((name) => ({
      name, description: 'd', parameters: { type: 'object' }, execute: execute[name],
    }));
    const fail = () => { throw odd; };
    const hooks = { onAgentMessage: fail, onSessionEnd: fail };
    const model = { id: 'glm', apiBaseUrl: emulator.gatewayUrl, apiKey: emulator.apiKey };
    const agent = createAgent({ envId: 'e', model, tools, hooks });
    const { stopReason } = await agent.prompt('hi');
    const results = emulator.requests[1].body.messages.at(-1).content;
    await agent.close();
    await emulator.close();
    const failed = results.filter(({ is_error }) => is_error).length;
    console.log(stopReason, failed, emulator.violations.length);
  `;
  assert.equal(await runClean(source), 'end_turn 7 0');
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { httpError, startEmulator, text, toolCall } from '../emulator/index.js';
import { createAgent } from '../index.js';
import { ENTRY, eventually, runModule } from './support/boundary.js';
import { idleOf, textOf } from './support/gateway-elements.js';
import { SOON, gatewayFor, tool } from './support/gateway.js';

const PROMPT = 'prompt-words-0815';
const OUTPUT = 'output-words-4711';
const ANSWER = 'answer-words-1234';
const SYSTEM = 'system-words-5678';
const CONTENT = new RegExp([PROMPT, OUTPUT, ANSWER, SYSTEM, 'emulator-key'].join('|'));

/** A run with a retry, a tool, and a repaired failure: everything that is logged. */
const RUN = {
  rules: [
    { times: 1, reply: httpError(529, {}, SOON) },
    { when: { hasToolResult: true }, reply: `${ANSWER}.` },
    { reply: toolCall('look', { path: PROMPT }) },
  ],
  tools: [tool('look', () => OUTPUT)],
  systemPrompt: SYSTEM,
};

const LOGGED = [
  ['model', 'request is repeated', 'E_MODEL_OVERLOADED'],
  ['engine', 'request was answered'],
  ['engine', 'tool call ended'],
  ['engine', 'request was answered'],
  ['session', 'run ended'],
];

/** The records of a run, once the last one came. */
async function recordsOf(records) {
  await eventually(() => records.some(({ message }) => message === 'run ended'), 'the last record');
  return records.map(({ tag, message, fields }) => [
    tag,
    message,
    ...(fields.code ? [fields.code] : []),
  ]);
}

test('telemetry: a logger that is a function gets records without content', async (t) => {
  const records = [];
  const { send } = await gatewayFor(t, { ...RUN, logger: (record) => records.push(record) });
  await send(PROMPT);
  assert.deepEqual(await recordsOf(records), LOGGED);
  for (const record of records) {
    assert.deepEqual(Object.keys(record).sort(), ['fields', 'level', 'message', 'tag']);
    assert.ok(['debug', 'info', 'warn', 'error'].includes(record.level));
  }
  assert.doesNotMatch(JSON.stringify(records), CONTENT);
  const [answered] = records.filter(({ message }) => message === 'request was answered');
  const { request_id: id, stop_reason: reason, input_tokens: input, ms } = answered.fields;
  assert.equal(typeof id, 'string');
  assert.deepEqual([reason, typeof input, typeof ms], ['tool_use', 'number', 'number']);
});

test('telemetry: a logger may be an object with methods, also of a class', async (t) => {
  class Logger {
    #records = [];
    debug(record) {
      this.#records.push(record);
    }
    warn(record) {
      this.#records.push(record);
    }
    get records() {
      return this.#records;
    }
  }
  const logger = new Logger();
  const { send } = await gatewayFor(t, { ...RUN, logger });
  await send(PROMPT);
  assert.deepEqual(await recordsOf(logger.records), LOGGED);
  assert.ok(logger.records.every(({ level }) => level === 'debug' || level === 'warn'));
});

test('telemetry: methods get the records of their level alone', async (t) => {
  const seen = { warn: [], error: [] };
  const debug = [];
  const logger = {
    debug: (record) => debug.push(record),
    warn: (record) => seen.warn.push(record),
    error: (record) => seen.error.push(record),
  };
  const onAgentMessage = () => Promise.reject(new Error('observer fails'));
  const { send } = await gatewayFor(t, { ...RUN, logger, hooks: { onAgentMessage } });
  await send(PROMPT);
  await recordsOf(debug);
  assert.deepEqual(
    seen.warn.map(({ level, tag, message, fields }) => [level, tag, message, fields.code]),
    [['warn', 'session', 'observer hook failed', 'E_HOOK']],
  );
  assert.deepEqual(seen.error, []);
});

test('telemetry: the end of a failed run carries its code', async (t) => {
  const records = [];
  const { send } = await gatewayFor(t, {
    rules: httpError(401, { message: PROMPT }),
    logger: (record) => records.push(record),
  });
  await send('hi');
  await recordsOf(records);
  const { fields } = records.at(-1);
  assert.deepEqual([fields.stop_reason, fields.code], ['error', 'E_MODEL_AUTH']);
  assert.doesNotMatch(JSON.stringify(records), CONTENT);
});

const WRONG = [5, 'stderr', {}, { log: () => {} }, { debug: 'no' }, []];

test('telemetry: observers of a wrong shape are refused', () => {
  const config = { envId: 'e', model: { id: 'glm', apiKey: 'k' } };
  for (const key of ['logger', 'onMetric', 'telemetry']) {
    for (const value of WRONG) {
      const wanted = { code: 'E_INVALID_CONFIG', message: new RegExp(key) };
      assert.throws(() => createAgent({ ...config, [key]: value }), wanted);
    }
    for (const value of [undefined, null]) createAgent({ ...config, [key]: value });
  }
});

/** A program that runs once with a tool; `extra` are further settings as source. */
function program(emulator, extra = '') {
  return `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const agent = createAgent({
      envId: 'e',
      model: { id: 'glm', apiBaseUrl: ${JSON.stringify(emulator.gatewayUrl)},
        apiKey: ${JSON.stringify(emulator.apiKey)} },
      systemPrompt: ${JSON.stringify(SYSTEM)},
      tools: [{ name: 'look', description: 'd', parameters: { type: 'object' },
        execute: () => ${JSON.stringify(OUTPUT)} }],
      ${extra}
    });
    const { text } = await agent.prompt(${JSON.stringify(PROMPT)});
    console.log(text);
    await agent.close();
  `;
}

async function emulatorFor(t) {
  const emulator = await startEmulator({ rules: RUN.rules });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  return emulator;
}

test('telemetry: OAK_DEBUG=1 writes lines without content to standard error', async (t) => {
  const emulator = await emulatorFor(t);
  const { code, out, err } = await runModule(program(emulator), { env: { OAK_DEBUG: '1' } });
  assert.deepEqual([code, out.trim()], [0, `${ANSWER}.`]);
  const lines = err.trim().split('\n');
  for (const line of lines) assert.match(line, /^\[oak\]\[(model|engine|session)\] \w/);
  assert.deepEqual(
    lines.map((line) => /^\[oak\]\[(\w+)\] ([a-z ]+?)(?= \w+=|$)/.exec(line).slice(1)),
    LOGGED.map(([tag, message]) => [tag, message]),
  );
  assert.match(err, /code="?E_MODEL_OVERLOADED/);
  assert.doesNotMatch(err, CONTENT);
});

for (const value of [undefined, '', '0']) {
  test(`telemetry: OAK_DEBUG=${value} writes nothing`, async (t) => {
    const emulator = await emulatorFor(t);
    const env = value === undefined ? {} : { OAK_DEBUG: value };
    const { code, err } = await runModule(program(emulator), { env });
    assert.deepEqual([code, err], [0, '']);
  });
}

const BAD_OBSERVERS = {
  'throw at once': '() => { throw new Error("observer"); }',
  reject: 'async () => { throw new Error("observer"); }',
  'never settle': '() => new Promise(() => {})',
  'throw nothing': '() => { throw undefined; }',
};

for (const [name, source] of Object.entries(BAD_OBSERVERS)) {
  test(`telemetry: observers that ${name} change nothing`, async (t) => {
    for (const logger of [source, `{ debug: ${source} }`]) {
      const emulator = await emulatorFor(t);
      const extra = `logger: ${logger}, onMetric: ${source}, telemetry: ${source},`;
      const { code, out, err } = await runModule(program(emulator, extra));
      assert.deepEqual({ code, out: out.trim(), err }, { code: 0, out: `${ANSWER}.`, err: '' });
    }
  });
}

test('telemetry: agents do not see the records of each other', async (t) => {
  const mine = [];
  const others = [];
  const [one, two] = await Promise.all(
    [mine, others].map((list) =>
      gatewayFor(t, { rules: text('ok'), logger: (record) => list.push(record) }),
    ),
  );
  const elements = await one.send('hi');
  assert.deepEqual([textOf(elements), idleOf(elements).stopReason], ['ok', 'end_turn']);
  await recordsOf(mine);
  assert.deepEqual(others, []);
  await two.send('hi');
  await recordsOf(others);
  assert.equal(mine.length, 2);
});

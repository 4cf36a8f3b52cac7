import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { UsageError, readArgs } from '../emulator/cli/args.js';
import { emulatorFor, send, stream, textOf } from '../emulator/fixtures/client.js';

const cli = fileURLToPath(new URL('../emulator/cli.js', import.meta.url));
const rulesFile = fileURLToPath(new URL('../emulator/fixtures/rules.json', import.meta.url));

function start(...args) {
  const child = spawn(process.execPath, [cli, ...args]);
  const output = { out: '', err: '' };
  child.stdout.on('data', (data) => (output.out += data));
  child.stderr.on('data', (data) => (output.err += data));
  const closed = once(child, 'close').then(([code]) => ({ ...output, code }));
  return { child, output, closed };
}

async function firstLine({ child, output, closed }) {
  while (!output.out.includes('\n')) {
    await Promise.race([once(child.stdout, 'data'), closed.then((end) => Promise.reject(end.err))]);
  }
  return output.out.split('\n')[0];
}

test('--json announces an emulator that works; stdin end stops it', async () => {
  const running = start('--json', '--exit-on-stdin-end', '--env-id', 'e1', '--api-key', 'k1');
  const emulator = JSON.parse(await firstLine(running));
  assert.deepEqual(Object.keys(emulator), ['url', 'gatewayUrl', 'apiKey', 'envId']);
  assert.equal(emulator.apiKey, 'k1');
  assert.equal(emulator.envId, 'e1');
  assert.match(textOf(await stream(emulator, 'hello')), /hello/);
  running.child.stdin.end();
  assert.equal((await running.closed).code, 0);
});

test('SIGTERM stops it cleanly, also with a stalled stream', async () => {
  const running = start('--json', '--knobs', '{"stallAfter":1}');
  const emulator = JSON.parse(await firstLine(running));
  const response = await send(emulator, 'x');
  running.child.kill('SIGTERM');
  await assert.rejects(response.text());
  assert.equal((await running.closed).code, 0);
});

test('rules come from a file', async () => {
  const running = start('--json', '--exit-on-stdin-end', '--rules', rulesFile);
  const emulator = JSON.parse(await firstLine(running));
  assert.equal(textOf(await stream(emulator, 'PING 7')), 'pong: PING 7');
  running.child.stdin.end();
  await running.closed;
});

test('the human form names address and usage', async () => {
  const running = start('--exit-on-stdin-end');
  assert.match(await firstLine(running), /listening on http:\/\/127\.0\.0\.1:\d+$/);
  running.child.stdin.end();
  assert.match((await running.closed).out, /OAK_EMULATOR_HUB=http/);
});

test('on all addresses it says so and prints one that clients can connect to', async () => {
  const human = start('--exit-on-stdin-end', '--host', '0.0.0.0');
  assert.match(
    await firstLine(human),
    /listening on http:\/\/127\.0\.0\.1:\d+ \(it listens on all addresses\)$/,
  );
  human.child.stdin.end();
  const { out } = await human.closed;
  assert.doesNotMatch(out, /0\.0\.0\.0/);
  assert.match(out, /OAK_EMULATOR_HUB=http:\/\/127\.0\.0\.1:\d+ /);

  const json = start('--json', '--exit-on-stdin-end', '--host', '0.0.0.0');
  const emulator = JSON.parse(await firstLine(json));
  assert.match(emulator.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  assert.match(textOf(await stream(emulator, 'hello')), /hello/);
  json.child.stdin.end();
  assert.equal((await json.closed).code, 0);
});

test('--help', async () => {
  const { code, out } = await start('--help').closed;
  assert.equal(code, 0);
  assert.match(out, /Usage:/);
});

const MISTAKES = [
  [['--what'], /--what/],
  [['positional'], /positional/],
  [['--port', '70000'], /--port: "70000"/],
  [['--port', 'x'], /--port: "x" .*; give one from 0 to 65535/],
  [['--port', ''], /--port: ""/],
  [['--port=-1'], /--port: "-1"/],
  [['--rules', 'missing-file.json'], /--rules: .*missing-file/],
  [['--knobs', '{'], /--knobs: not JSON/],
  [['exec'], /exec needs a command/],
  [['exec', '--'], /exec needs a command/],
];
for (const [args, wanted] of MISTAKES) {
  test(`mistake: ${args.join(' ')}`, () => {
    assert.throws(
      () => readArgs(args),
      (error) => error instanceof UsageError && wanted.test(error.message),
    );
  });
}

const TOLD = [
  [['--what'], /--what/],
  [['--port', 'x'], /^oak-emulator: --port: "x"/],
  // Messages of several lines.
  [['--port', '-1'], /--port/],
  [['--knobs', '{\n\n"a" 1}'], /--knobs: not JSON/],
  [['--knobs', '{"nope":1}'], /^oak-emulator: knobs\.nope: unknown knob/],
  [['--host', ''], /^oak-emulator: host: must be an address/],
];
for (const [args, wanted] of TOLD) {
  test(`told in one line with exit code 2: ${JSON.stringify(args)}`, async () => {
    const { code, err, out } = await start(...args).closed;
    assert.equal(code, 2);
    assert.match(err, wanted);
    assert.match(err, /^[^\n]+\n$/);
    assert.equal(out, '');
  });
}

test('a port that is taken is told, too', async (t) => {
  const emulator = await emulatorFor(t);
  const { code, err } = await start('--port', new URL(emulator.url).port).closed;
  assert.equal(code, 2);
  assert.match(err, /EADDRINUSE/);
});

test('exec gives the command an emulator and its exit code', async () => {
  const script = `
    const hub = await (await fetch(process.env.OAK_EMULATOR_HUB)).json();
    console.log(hub.apiKey === process.env.TCB_API_KEY, process.argv.slice(1).join());
    process.exit(7);`;
  const node = [process.execPath, '--input-type=module', '-e', script];
  const { code, out } = await start('exec', '--api-key', 'k', '--', ...node, 'a', '--b').closed;
  assert.equal(out, 'true a,--b\n');
  assert.equal(code, 7);
});

test('exec reports a missing command and invalid requests', async () => {
  const missing = await start('exec', '--', 'no-such-command-here').closed;
  assert.equal(missing.code, 127);
  assert.match(missing.err, /cannot run no-such-command-here/);
  const script = `
    const hub = await (await fetch(process.env.OAK_EMULATOR_HUB)).json();
    const headers = { authorization: 'Bearer ' + hub.apiKey };
    await fetch(hub.endpoints.gateway + '/v1/messages', { method: 'POST', headers, body: '{}' });`;
  const invalid = await start('exec', '--', process.execPath, '--input-type=module', '-e', script)
    .closed;
  assert.equal(invalid.code, 0);
  assert.match(invalid.err, /1 invalid requests, first: model/);
});

test('exec forwards signals', { skip: process.platform === 'win32' }, async () => {
  const script = `
    process.on('SIGTERM', () => process.exit(9));
    setInterval(() => {}, 1000);
    console.log('ready');`;
  const running = start('exec', '--', process.execPath, '-e', script);
  assert.equal(await firstLine(running), 'ready');
  running.child.kill('SIGTERM');
  assert.equal((await running.closed).code, 9);
  const killed = await start('exec', '--', process.execPath, '-e', 'process.kill(process.pid, 9)')
    .closed;
  assert.equal(killed.code, 137);
});

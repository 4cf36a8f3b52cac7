/** MCP servers as child processes: real ones, and ones that misbehave. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { toolCalls } from '../emulator/index.js';
import { ENTRY, collect } from './support/boundary.js';
import { errorsOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, resultsIn } from './support/gateway.js';
import { stdioServer } from './support/mcp-servers.js';

const ODD = fileURLToPath(new URL('./support/mcp-odd-server.js', import.meta.url));
const DONE = { when: { hasToolResult: true }, reply: 'Done.' };
const GONE_MS = 10_000;

let marks = 0;
/** A text that the command line of one server has, and of no other process. */
const mark = () => `oak-mcp-test-${process.pid}-${(marks += 1)}`;
const odd = (behaviour, marker, ...more) => ({
  command: process.execPath,
  args: [ODD, behaviour, marker, ...more],
});
const calling = (...names) =>
  toolCalls(names.map((name, at) => ({ id: `toolu_${at}`, name, input: { at } })));

function folder(t) {
  const path = mkdtempSync(join(tmpdir(), 'oak-mcp-'));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** The processes whose command line has the marker. */
function processes(marker) {
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(marker);
    } catch {
      return false;
    }
  });
}

async function gone(marker) {
  const end = Date.now() + GONE_MS;
  while (processes(marker).length > 0) {
    assert.ok(Date.now() < end, `still there: ${processes(marker)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The results of the calls, as the model sees them. */
const told = (gateway) => resultsIn(gateway.messages(-1).at(-1));

test('stdio: the tools of server-everything are offered and called', async (t) => {
  const calls = toolCalls([
    { id: 'toolu_0', name: 'mcp__everything__echo', input: { message: 'grüße 北京😀' } },
    { id: 'toolu_1', name: 'mcp__everything__get-sum', input: { a: 2, b: 40 } },
  ]);
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calls }],
    mcpServers: { everything: { ...stdioServer('everything'), alwaysLoad: true } },
  });
  const elements = await gateway.send('go');
  assert.deepEqual(errorsOf(elements), []);
  const results = JSON.stringify(told(gateway));
  assert.match(results, /grüße 北京😀/);
  assert.match(results, /The sum of 2 and 40 is 42\./);
});

test('stdio: server-filesystem reads a file', async (t) => {
  const path = folder(t);
  writeFileSync(join(path, 'a.txt'), 'what the file says');
  const input = { path: join(path, 'a.txt') };
  const gateway = await gatewayFor(t, {
    rules: [
      DONE,
      { reply: toolCalls([{ id: 'toolu_0', name: 'mcp__files__read_text_file', input }]) },
    ],
    mcpServers: { files: { ...stdioServer('filesystem', [path]), alwaysLoad: true } },
  });
  await gateway.send('go');
  assert.match(JSON.stringify(told(gateway)), /what the file says/);
});

test('stdio: a child gets few variables, its own, and no keys', async (t) => {
  process.env.TCB_API_KEY = 'secret-of-the-host';
  process.env.OAK_TEST_OTHER = 'other';
  t.after(() => {
    delete process.env.TCB_API_KEY;
    delete process.env.OAK_TEST_OTHER;
  });
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling('mcp__odd__env') }],
    mcpServers: { odd: { ...odd('well', mark()), env: { OWN: 'mine' }, alwaysLoad: true } },
  });
  await gateway.send('go');
  const [[, text]] = told(gateway);
  const env = JSON.parse(text);
  assert.equal(env.OWN, 'mine');
  assert.equal(env.PATH, process.env.PATH);
  const allowed = /^(HOME|LANG|LC_\w+|LOGNAME|PATH|SHELL|TERM|TMPDIR|TZ|USER|OWN)$/;
  assert.deepEqual(
    Object.keys(env).filter((name) => !allowed.test(name)),
    [],
  );
});

test('FC-F1 stdio: floods of standard error hold nothing up', async (t) => {
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling(...Array(5).fill('mcp__odd__echo')) }],
    mcpServers: { odd: { ...odd('floods', mark()), alwaysLoad: true } },
  });
  const elements = await gateway.send('go');
  assert.deepEqual(errorsOf(elements), []);
  assert.equal(told(gateway).filter(([, , isError]) => !isError).length, 5);
});

test('FC-F2 stdio: a server that dies in a call fails it and serves the next one', async (t) => {
  const flag = join(folder(t), 'died');
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling('mcp__odd__echo', 'mcp__odd__echo') }],
    mcpServers: { odd: { ...odd('dies', mark(), flag), alwaysLoad: true } },
  });
  const elements = await gateway.send('go');
  assert.equal(textOf(elements), 'Done.');
  const [first, second] = told(gateway);
  assert.deepEqual([first[2], second[2]], [true, false]);
  assert.match(first[1], /^MCP server "odd" exited with code 1 while it ran the tool "echo"/);
  assert.match(first[1], /out of cheese/);
});

test('FC-F3 stdio: a command that does not exist costs its tools only', async (t) => {
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling('mcp__odd__do_it_now') }],
    mcpServers: {
      gone: { command: 'oak-test-no-such-command' },
      odd: { ...odd('well', mark()), alwaysLoad: true },
    },
  });
  const elements = await gateway.send('go');
  const [error] = errorsOf(elements);
  assert.equal(error.code, 'E_MCP_SERVER');
  assert.match(
    error.message,
    /^MCP server "gone" could not be started: .*oak-test-no-such-command/,
  );
  assert.match(told(gateway)[0][1], /"name":"do\.it now"/);
});

test('50 sends at once share one process', async (t) => {
  const marker = mark();
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling('mcp__odd__echo') }],
    mcpServers: { odd: { ...odd('well', marker), alwaysLoad: true } },
  });
  const sends = Array.from({ length: 50 }, async (_, at) => {
    const session = await gateway.agent.startSession({ userId: `user-${at}` });
    return collect(session.send('go'));
  });
  for (const elements of await Promise.all(sends)) {
    assert.equal(textOf(elements), 'Done.');
    assert.deepEqual(errorsOf(elements), []);
  }
  const children = processes(marker).filter((pid) => {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
    return command[1] === ODD;
  });
  assert.equal(children.length, 1);
});

test('FC-F4 stdio: nothing of a launcher and its children is left after close', async (t) => {
  const marker = mark();
  const { command, args } = odd('well', marker);
  const line = [command, ...args].map((word) => `'${word}'`).join(' ');
  const gateway = await gatewayFor(t, {
    rules: [DONE, { reply: calling('mcp__odd__echo') }],
    mcpServers: {
      odd: {
        command: 'sh',
        args: ['-c', `sh -c 'sleep 1000; true' ${marker} & ${line}; true`],
        alwaysLoad: true,
      },
    },
  });
  await gateway.send('go');
  assert.ok(processes(marker).length > 0);
  await gateway.agent.close();
  assert.deepEqual(processes(marker), []);
});

for (const signal of ['SIGTERM', 'SIGKILL']) {
  test(`FC-F4 stdio: nothing is left after ${signal} of the host`, async (t) => {
    const marker = mark();
    const gateway = await gatewayFor(t, { rules: [DONE, { reply: calling('mcp__odd__echo') }] });
    const model = {
      id: 'glm',
      apiBaseUrl: gateway.emulator.gatewayUrl,
      apiKey: gateway.emulator.apiKey,
    };
    const config = {
      envId: 'e',
      model,
      mcpServers: { odd: { ...odd('well', marker), alwaysLoad: true } },
    };
    const source = `
      import { createAgent } from ${JSON.stringify(ENTRY)};
      const agent = createAgent(${JSON.stringify(config)});
      await agent.prompt('go');
      console.log('ready');
      setInterval(() => {}, 1000);
    `;
    const host = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => host.kill('SIGKILL'));
    await once(host.stdout, 'data');
    host.kill(signal);
    await once(host, 'exit');
    await gone(marker);
  });
}

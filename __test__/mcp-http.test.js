import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCalls } from '../emulator/index.js';
import { errorsOf, textOf } from './support/gateway-elements.js';
import { gatewayFor } from './support/gateway.js';
import { startEverything } from './support/mcp-servers.js';

const name = (tool) => `mcp__everything__${tool}`;

/**
 * An agent with server-everything, whose model makes these calls.
 *
 * @param {import('node:test').TestContext} t
 * @param {'http' | 'sse'} type
 * @param {[string, object][]} calls
 */
async function everything(t, type, calls) {
  const server = await startEverything(t, type);
  const made = calls.map(([tool, input], at) => ({ id: `toolu_${at}`, name: name(tool), input }));
  const gateway = await gatewayFor(t, {
    rules: [{ when: { hasToolResult: true }, reply: 'Done.' }, { reply: toolCalls(made) }],
    mcpServers: { everything: { ...server.config, alwaysLoad: true } },
  });
  return { server, ...gateway };
}

/** Sends, and gives the results as the model sees them, in the order of the calls. */
async function results(gateway) {
  const elements = await gateway.send('go');
  assert.equal(textOf(elements), 'Done.');
  assert.deepEqual(errorsOf(elements), []);
  const told = gateway.messages(-1).at(-1).content;
  const blocks = told.filter(({ type }) => type === 'tool_result');
  return { elements, blocks };
}

function textOfResult({ content }) {
  if (typeof content === 'string') return content;
  return content.map(({ text }) => text ?? '').join('\n');
}

for (const type of ['http', 'sse']) {
  test(`${type}: the tools of server-everything are offered and called`, async (t) => {
    const gateway = await everything(t, type, [
      ['echo', { message: 'grüße 北京😀' }],
      ['get-sum', { a: 2, b: 40 }],
      ['get-structured-content', { location: 'Chicago' }],
    ]);
    const { blocks } = await results(gateway);
    assert.match(textOfResult(blocks[0]), /grüße 北京😀/);
    assert.match(textOfResult(blocks[1]), /The sum of 2 and 40 is 42\./);
    assert.match(textOfResult(blocks[2]), /"conditions":"Light rain/);
    assert.ok(blocks.every(({ is_error: isError }) => !isError));
    const offered = gateway.emulator.requests[0].body.tools.map((tool) => tool.name);
    assert.ok(offered.length >= 12);
    for (const tool of ['echo', 'get-env', 'get-tiny-image', 'trigger-long-running-operation']) {
      assert.ok(offered.includes(name(tool)), tool);
    }
  });

  test(`${type}: an image arrives as an image`, async (t) => {
    const gateway = await everything(t, type, [['get-tiny-image', {}]]);
    const [{ content }] = (await results(gateway)).blocks;
    const image = content.find((block) => block.type === 'image');
    assert.equal(image.source.media_type, 'image/png');
    assert.match(image.source.data, /^iVBORw0KGgo/);
  });

  test(`${type}: a long operation reports its progress`, async (t) => {
    const gateway = await everything(t, type, [
      ['trigger-long-running-operation', { duration: 0.6, steps: 3 }],
    ]);
    const { elements, blocks } = await results(gateway);
    assert.match(textOfResult(blocks[0]), /completed\. Duration: 0\.6 seconds, Steps: 3\./);
    const reports = elements.filter(
      ({ status, content }) => status === 'in_progress' && content !== undefined,
    );
    assert.deepEqual(
      reports.map(({ content }) => JSON.parse(content[0].content.text)),
      [1, 2, 3].map((progress) => ({ progress, total: 3 })),
    );
  });

  test(`${type}: what a tool refuses is told to the model`, async (t) => {
    const gateway = await everything(t, type, [
      ['get-structured-content', { location: 'Nowhere' }],
      ['get-sum', { a: 1, b: 1 }],
    ]);
    const { blocks } = await results(gateway);
    assert.equal(blocks[0].is_error, true);
    assert.match(textOfResult(blocks[1]), /is 2\./);
  });

  test(`${type}: a server that logs all the time disturbs nothing`, async (t) => {
    const gateway = await everything(t, type, [
      ['toggle-simulated-logging', {}],
      ['toggle-subscriber-updates', {}],
      ['get-sum', { a: 20, b: 3 }],
    ]);
    const { blocks } = await results(gateway);
    assert.match(textOfResult(blocks[0]), /Started simulated/);
    assert.match(textOfResult(blocks[2]), /is 23\./);
  });

  test(`${type}: a server that was started again is connected again`, async (t) => {
    const gateway = await everything(t, type, [['get-sum', { a: 1, b: 2 }]]);
    const first = await results(gateway);
    assert.match(textOfResult(first.blocks[0]), /is 3\./);
    await gateway.server.restart();
    const second = await results(gateway);
    assert.match(textOfResult(second.blocks[0]), /is 3\./);
  });

  test(`${type}: many calls at once share one connection`, async (t) => {
    const gateway = await everything(
      t,
      type,
      Array.from({ length: 30 }, (_, at) => ['get-sum', { a: at, b: at }]),
    );
    const { blocks } = await results(gateway);
    assert.equal(blocks.length, 30);
    blocks.forEach((block, at) =>
      assert.match(textOfResult(block), new RegExp(`is ${2 * at}\\.$`)),
    );
    const greetings = gateway.server.output().match(/Session initialized|Client Connected/g);
    assert.equal(greetings.length, 1);
  });

  test(`${type}: a call that is stopped ends at once, and the connection stays`, async (t) => {
    const gateway = await everything(t, type, [
      ['trigger-long-running-operation', { duration: 60, steps: 600 }],
    ]);
    const stopper = new AbortController();
    const seen = [];
    for await (const element of gateway.session.send('go', { signal: stopper.signal })) {
      seen.push(element);
      if (element.status === 'in_progress' && element.content) stopper.abort();
    }
    assert.equal(seen.at(-1).stopReason, 'aborted');
    const gone = gateway.emulator.requests.length;
    const other = await gateway.agent.startSession({ userId: 'bob' });
    const stream = other.send('go');
    for await (const element of stream) if (element.content) break;
    assert.ok(gateway.emulator.requests.length > gone);
    const greetings = gateway.server.output().match(/Session initialized|Client Connected/g);
    assert.equal(greetings.length, 1);
  });
}

test('http: the end of the agent is told to the server', async (t) => {
  const gateway = await everything(t, 'http', [['echo', { message: 'hi' }]]);
  await results(gateway);
  await gateway.agent.close();
  await gateway.server.wrote('Received session termination request');
});

test('a server that is not there costs its tools, not the run', async (t) => {
  for (const type of ['http', 'sse']) {
    const gateway = await gatewayFor(t, {
      rules: 'Hi.',
      mcpServers: {
        gone: {
          type,
          url: 'http://127.0.0.1:1/mcp?key=in-the-query',
          headers: { Authorization: 'Bearer sk-12345678' },
          alwaysLoad: true,
        },
      },
    });
    const elements = await gateway.send('go');
    assert.equal(textOf(elements), 'Hi.');
    const logs = elements.filter(({ sessionUpdate }) => sessionUpdate === 'log');
    assert.match(logs[0].message, /gone.*cannot reach http:\/\/127\.0\.0\.1:1/s);
    assert.doesNotMatch(JSON.stringify(elements), /sk-12345678|in-the-query/);
  }
});

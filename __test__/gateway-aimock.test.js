import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';

import { createAgent } from '../index.js';
import { oracle } from '../scripts/oracle.js';
import {
  chunksOf,
  endsOf,
  errorOf,
  idleOf,
  readStream,
  textOf,
  thoughtOf,
} from './support/gateway-elements.js';
import { tool } from './support/gateway.js';

const require = createRequire(join(oracle('aimock'), 'package.json'));
const { LLMock } = require('@copilotkit/aimock');

/**
 * A gateway that nobody here wrote, and a session that talks to it.
 *
 * @param {import('node:test').TestContext} t
 * @param {object[]} fixtures of aimock
 * @param {object} [config] further fields of the agent's configuration
 */
async function aimockFor(t, fixtures, { model, ...config } = {}) {
  const mock = new LLMock({ port: 0, host: '127.0.0.1', chunkSize: 4, strict: true });
  mock.addFixtures(fixtures);
  const apiBaseUrl = await mock.start();
  const agent = createAgent({
    envId: 'test-env',
    model: { id: 'claude-test', apiBaseUrl, apiKey: 'mock', maxRetries: 0, ...model },
    ...config,
  });
  t.after(async () => {
    await agent.close();
    const stopped = mock.stop();
    // It would wait for a connection that the pool made ahead and that carried no request.
    mock.serverInstance.server.closeAllConnections();
    await stopped;
  });
  const session = await agent.startSession({ userId: 'ann' });
  const bodies = () => mock.getRequests().map(({ body }) => body);
  return { mock, session, bodies, send: (input) => readStream(session.send(input)) };
}

test('aimock: a text in chunks of four characters arrives whole', async (t) => {
  const answer = 'Hello from another gateway: 北京😀!';
  const { mock, send } = await aimockFor(t, [
    { match: { userMessage: 'hello' }, response: { content: answer } },
  ]);
  const elements = await send('hello');
  assert.equal(textOf(elements), answer);
  assert.ok(chunksOf(elements).length > 3);
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  const [request] = mock.getRequests();
  assert.equal(request.path, '/v1/messages');
  assert.equal(request.response.status, 200);
});

test('aimock: a call of a tool, its result and the final answer', async (t) => {
  const inputs = [];
  const { mock, send } = await aimockFor(
    t,
    [
      { match: { toolCallId: 'toolu_w' }, response: { content: 'Sunny, 23 degrees.' } },
      {
        match: { userMessage: 'weather' },
        response: {
          content: 'Let me look.',
          toolCalls: [
            { id: 'toolu_w', name: 'get_weather', arguments: '{"city":"北京","days":[1,2,3]}' },
          ],
        },
      },
    ],
    { tools: [tool('get_weather', (input) => (inputs.push(input), { celsius: 23 }))] },
  );
  const elements = await send('how is the weather?');
  assert.deepEqual(inputs, [{ city: '北京', days: [1, 2, 3] }]);
  assert.equal(textOf(elements), 'Let me look.Sunny, 23 degrees.');
  assert.deepEqual(endsOf(elements), [['toolu_w', 'completed', { celsius: 23 }]]);
  assert.equal(mock.getRequests().length, 2);
});

test('aimock: several calls in one answer, and a second turn', async (t) => {
  const { send, bodies } = await aimockFor(
    t,
    [
      { match: { userMessage: 'thanks' }, response: { content: 'You are welcome.' } },
      { match: { toolCallId: 'toolu_2' }, response: { content: 'Both done.' } },
      {
        match: { userMessage: 'both' },
        response: {
          toolCalls: [
            { id: 'toolu_1', name: 'peek', arguments: '{"at":1}' },
            { id: 'toolu_2', name: 'peek', arguments: '{}' },
          ],
        },
      },
    ],
    { tools: [tool('peek', ({ at = 0 }) => `seen ${at}`, { readOnly: true })] },
  );
  assert.equal(textOf(await send('both, please')), 'Both done.');
  assert.equal(textOf(await send('thanks')), 'You are welcome.');
  // aimock keeps requests in the form of another API.
  const results = bodies()[1].messages.filter(({ role }) => role === 'tool');
  assert.deepEqual(
    results.map(({ tool_call_id: id, content }) => [id, content]),
    [
      ['toolu_1', 'seen 1'],
      ['toolu_2', 'seen 0'],
    ],
  );
  assert.equal(bodies().length, 3);
});

test('aimock: thinking is shown, and survives the next turn', async (t) => {
  const { send } = await aimockFor(t, [
    { match: { userMessage: 'again' }, response: { content: 'Still four.' } },
    {
      match: { userMessage: 'two and two' },
      response: { content: 'Four.', reasoning: 'Two and two make four.' },
    },
  ]);
  const elements = await send('two and two?');
  assert.equal(thoughtOf(elements), 'Two and two make four.');
  assert.equal(textOf(elements), 'Four.');
  assert.equal(textOf(await send('again?')), 'Still four.');
});

test('aimock: an error status is told with its words', async (t) => {
  const { mock, send } = await aimockFor(t, [
    { match: { userMessage: 'hello' }, response: { content: 'Hi.' } },
  ]);
  mock.nextRequestError(429, { message: 'Slow down', type: 'rate_limit_error' });
  const error = errorOf(await send('hello'));
  assert.deepEqual([error.code, error.status, error.retryable], ['E_MODEL_RATE_LIMIT', 429, true]);
  assert.match(error.message, /Slow down/);
  assert.equal(textOf(await send('hello')), 'Hi.');
});

test('aimock: a stream that breaks off is repeated', async (t) => {
  const { send, mock } = await aimockFor(
    t,
    [
      {
        match: { userMessage: 'hello', sequenceIndex: 0 },
        response: { content: 'This one will be lost on its way.' },
        truncateAfterChunks: 4,
      },
      { match: { userMessage: 'hello' }, response: { content: 'This one arrives.' } },
    ],
    { model: { maxRetries: 2 } },
  );
  const elements = await send('hello');
  assert.equal(textOf(elements), 'This one arrives.');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  assert.equal(mock.getRequests().length, 2);
});

test('FC-A1 aimock: emoji that it cuts into two events are whole, in texts and inputs', async (t) => {
  const text = 'abc😀d😀ef😀 北京😀';
  const inputs = [];
  const { send } = await aimockFor(
    t,
    [
      { match: { userMessage: 'say' }, response: { content: text } },
      { match: { toolCallId: 'toolu_1' }, response: { content: 'Done.' } },
      {
        match: { userMessage: 'call' },
        response: {
          toolCalls: [
            { id: 'toolu_1', name: 'echo', arguments: JSON.stringify({ a: text, b: [text] }) },
          ],
        },
      },
    ],
    { model: { restart: 'never' }, tools: [tool('echo', (input) => inputs.push(input))] },
  );
  assert.equal(textOf(await send('say it')), text);
  await send('call it');
  assert.deepEqual(inputs, [{ a: text, b: [text] }]);
});

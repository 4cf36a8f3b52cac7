/** A call that waits, and a question, in each format of the stream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCalls } from '../emulator/index.js';
import { AcpStreamAdapter } from '../index.js';
import { collect } from './support/boundary.js';
import { clientTool } from './support/client-tools.js';
import { Mirror } from './support/format-adapter.js';
import { gatewayFor } from './support/gateway.js';

const QUESTIONS = [
  {
    question: 'Which?',
    header: 'Colour',
    options: [
      { label: 'Red', description: 'warm' },
      { label: 'Blue', description: 'cold' },
    ],
    multiSelect: false,
  },
];
const INPUT = { city: 'Rome' };

/** A run that pauses with a client tool and a question, and the answer to the question. */
async function paused(t, config) {
  const { agent } = await gatewayFor(t, {
    rules: [
      { when: { hasToolResult: true }, reply: 'Done.' },
      {
        reply: toolCalls([
          { id: 'toolu_1', name: 'pick', input: INPUT },
          { id: 'toolu_2', name: 'AskUserQuestion', input: { questions: QUESTIONS } },
        ]),
      },
    ],
    tools: [clientTool('pick')],
    askUser: true,
    ...config,
  });
  const session = await agent.startSession({ userId: 'ann', conversationId: 'conv_1' });
  const first = await collect(session.send('go'));
  const again = await collect(session.respondAskUser({ toolUseId: 'toolu_2', answer: 'Red' }));
  const last = await collect(session.respondToolUse({ toolUseId: 'toolu_1', output: { n: 1 } }));
  return { first, again, last };
}

/** The turn of an element and the rest of it. */
function withoutTurn(element) {
  const turns = new Set();
  const rest = JSON.parse(JSON.stringify(element), (key, value) => {
    if (key !== 'assistantMessageId') return value;
    turns.add(value);
    return undefined;
  });
  assert.equal(turns.size, 1, 'one turn');
  return { rest, turn: [...turns][0] };
}

/** Checks what was told of the calls in the first run and, of the one still open, in the second. */
function assertOpen({ first, again }, isOpen, [call, question], repeated) {
  const told = [...first.filter(isOpen), ...again.filter(isOpen)].map(withoutTurn);
  assert.deepEqual(
    told.map(({ rest }) => rest),
    [call, question, repeated],
  );
  assert.equal(new Set(told.map(({ turn }) => turn)).size, 1, 'a turn keeps its id');
}

test('acp: tool_confirm and ask_user', async (t) => {
  const run = await paused(t, { streamFormat: 'acp' });
  const confirm = (oak) => ({
    sessionUpdate: 'tool_confirm',
    toolCallId: 'toolu_1',
    toolName: 'pick',
    input: INPUT,
    _meta: { oak: { kind: 'client_tool', ...oak } },
  });
  const ask = {
    sessionUpdate: 'ask_user',
    toolCallId: 'toolu_2',
    questions: QUESTIONS,
    _meta: { oak: { kind: 'question' } },
  };
  const isOpen = ({ sessionUpdate }) => ['tool_confirm', 'ask_user'].includes(sessionUpdate);
  assertOpen(run, isOpen, [confirm(), ask], confirm({ repeated: true }));
  assert.equal(run.first.at(-1).stopReason, 'awaiting_client_tool');
  assert.equal(run.again.at(-1).stopReason, 'awaiting_client_tool');
  assert.equal(run.last.at(-1).stopReason, 'end_turn');
});

test('acp-v1: request_permission without options, and ask_user', async (t) => {
  const run = await paused(t, { streamFormat: 'acp-v1' });
  const request = (oak) => ({
    sessionUpdate: 'request_permission',
    sessionId: 'conv_1',
    toolCall: {
      toolCallId: 'toolu_1',
      title: 'pick',
      kind: 'other',
      status: 'pending',
      rawInput: INPUT,
    },
    options: [],
    _meta: { oak: { kind: 'client_tool', ...oak } },
  });
  const ask = {
    sessionUpdate: 'ask_user',
    toolCallId: 'toolu_2',
    questions: QUESTIONS,
    _meta: { oak: { kind: 'question' } },
  };
  const isOpen = ({ sessionUpdate }) => ['request_permission', 'ask_user'].includes(sessionUpdate);
  assertOpen(run, isOpen, [request(), ask], request({ repeated: true }));
  assert.equal(run.first.at(-1).stopReason, 'awaiting_client_tool');
});

test('acp-jsonrpc: requests to the client', async (t) => {
  const run = await paused(t, { streamFormat: 'acp-jsonrpc' });
  const request = (id, name, params, oak) => ({
    jsonrpc: '2.0',
    id: `conv_1:${id}`,
    method: `client/${name}`,
    params,
    _meta: { sessionId: 'conv_1', toolCallId: id, oak },
  });
  const call = (oak) => request('toolu_1', 'pick', INPUT, { kind: 'client_tool', ...oak });
  const question = request(
    'toolu_2',
    'AskUserQuestion',
    { questions: QUESTIONS },
    { kind: 'question' },
  );
  assertOpen(run, ({ id }) => id !== undefined, [call(), question], call({ repeated: true }));
  const { params } = run.first.at(-1);
  assert.equal(params.update.stopReason, 'awaiting_client_tool');
});

test('events: tool_use_required and ask_user_required', async (t) => {
  const run = await paused(t, { streamFormat: 'events' });
  const isOpen = ({ type }) => type.endsWith('_required');
  const call = { type: 'tool_use_required', toolUseId: 'toolu_1', toolName: 'pick', input: INPUT };
  const question = {
    type: 'ask_user_required',
    toolUseId: 'toolu_2',
    question: 'Which?',
    options: ['Red', 'Blue'],
    questions: QUESTIONS,
  };
  assert.deepEqual(run.first.filter(isOpen), [call, question]);
  assert.deepEqual(run.again.filter(isOpen), [{ ...call, repeated: true }]);
  const idle = {
    type: 'session_idle',
    reason: 'requires_action',
    stopReason: 'awaiting_client_tool',
  };
  assert.deepEqual([run.first.at(-1), run.again.at(-1)], [idle, idle]);
  assert.equal(run.last.at(-1).reason, 'completed');
  const results = run.last.filter(({ type }) => type === 'tool_result');
  assert.deepEqual(results, [
    {
      type: 'tool_result',
      toolUseId: 'toolu_1',
      toolName: 'pick',
      output: { n: 1 },
      isError: false,
    },
  ]);
});

test('a custom adapter sees results that say that a call waits', async (t) => {
  const { first, again, last } = await paused(t, { streamAdapter: new Mirror() });
  const results = (messages) =>
    messages
      .filter(({ type }) => type === 'user')
      .flatMap(({ message }) => message.content)
      .filter(({ type }) => type === 'tool_result');
  const sentinel = ({ tool_use_id: id, content, is_error: isError }) => {
    const { __OAK_CLIENT_TOOL__: mark, toolName, toolInput, conversationId } = JSON.parse(content);
    return [id, isError, mark, toolName, toolInput, conversationId];
  };
  assert.deepEqual(results(first).map(sentinel), [
    ['toolu_1', true, true, 'pick', INPUT, 'conv_1'],
    ['toolu_2', true, true, 'AskUserQuestion', { questions: QUESTIONS }, 'conv_1'],
  ]);
  assert.deepEqual(results(again.slice(-2)).map(sentinel).length, 1);
  assert.deepEqual(
    results(last).map(({ content }) => content),
    ['{"n":1}'],
  );
  assert.equal(first.at(-1).stop_reason, 'awaiting_client_tool');
  assert.equal(first.at(-1).subtype, 'success');
});

test('AcpStreamAdapter makes requests of them', async (t) => {
  const { first } = await paused(t, { streamAdapter: new AcpStreamAdapter() });
  const requests = first.filter(({ id }) => id !== undefined);
  assert.deepEqual(
    requests.map(({ id, method, params }) => [id, method, params]),
    [
      ['conv_1:toolu_1', 'client/pick', INPUT],
      ['conv_1:toolu_2', 'client/AskUserQuestion', { questions: QUESTIONS }],
    ],
  );
});

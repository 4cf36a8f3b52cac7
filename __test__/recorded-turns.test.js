import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createAgent } from '../index.js';
import { endsOf, idleOf, readStream, totalsOf } from './support/gateway-elements.js';
import {
  answersOf,
  demoTools,
  notesOf,
  plain,
  playing,
  recorded,
  resultsOf,
  streamsOf,
} from './support/gateway-recorded.js';
import { gatewayFor, resultsIn } from './support/gateway.js';

const PROMPT = 'hi there';

/** Plays a recorded turn: the same answers, the same tools. */
async function replay(t, turn) {
  const replies = answersOf(turn).map((blocks) => ({ blocks: blocks.map(asSent) }));
  const gateway = await gatewayFor(t, { rules: [{ reply: replies }], tools: demoTools(turn) });
  const elements = await gateway.send(PROMPT);
  return { elements, ...gateway };
}

/** The input that the model wrote where the recording has the engine's stand-in for it. */
function asSent(block) {
  const unparsed = block.input?.__unparsedToolInput;
  if (unparsed === undefined) return block;
  const { input, ...rest } = block;
  return { ...rest, raw: input.__unparsedToolInput.raw };
}

/** What the recorded stream showed, in the same form as ours. */
function shown(turn) {
  const entries = [];
  for (const { type, content } of turn.messages) {
    if (type === 'assistant') entries.push(...content.map(noteOfBlock));
    if (type === 'user') entries.push(...content.map(noteOfResult));
  }
  return entries;
}

function noteOfBlock(block) {
  if (block.type === 'tool_use') return ['call', block.id, block.name];
  return [block.type, block.text ?? block.thinking];
}

function noteOfResult({ tool_use_id: id, is_error: isError }) {
  return ['result', id, isError ? 'failed' : 'completed'];
}

/** Ours without what the results say: that is compared as the model sees it. */
const told = (elements) =>
  notesOf(elements).map((note) => (note[0] === 'result' ? note.slice(0, 3) : note));

/** Whether the recording replaced a text by its length. */
const isCut = (text) => /^<text \d+ chars>$/.test(text);

for (const name of ['turn-text', 'turn-tool', 'turn-parallel', 'turn-toolerrs', 'turn-badjson']) {
  test(`recorded: ${name} shows the same, in the same order`, async (t) => {
    const turn = recorded(name);
    const { elements, emulator } = await replay(t, turn);
    assert.deepEqual(told(elements), shown(turn));
    const { result, stop_reason: stopReason } = turn.messages.at(-1);
    assert.equal(idleOf(elements).stopReason, stopReason);
    assert.equal(notesOf(elements).at(-1)[1], result);
    assert.equal(emulator.requests.length, turn.requests.length);
  });

  test(`recorded: ${name} gives the model the same results`, async (t) => {
    const turn = recorded(name);
    const { messages } = await replay(t, turn);
    const sent = turn.requests.length > 1 ? resultsIn(messages(-1).at(-1)) : [];
    const wanted = resultsOf(turn);
    assert.deepEqual(
      sent.map(([id, , isError]) => [id, isError]),
      wanted.map(([id, , isError]) => [id, isError]),
    );
    sent.forEach(([, text], at) => {
      const [, expected] = wanted[at];
      if (isCut(expected)) assert.match(text, /InputValidationError|schema|JSON/);
      // An image and the path of its file follow the text.
      else if (expected.includes('[Image')) assert.ok(expected.startsWith(text));
      else assert.equal(text, expected);
    });
  });
}

for (const name of ['turn-text', 'turn-tool', 'turn-parallel']) {
  test(`recorded: ${name} sends the same conversation`, async (t) => {
    const turn = recorded(name);
    const { emulator } = await replay(t, turn);
    emulator.requests.forEach(({ body }, at) => {
      assert.deepEqual(plain(body.messages), plain(turn.requests[at]));
    });
  });
}

test('recorded: turn-badjson sends back what the model wrote, in the same form', async (t) => {
  const turn = recorded('turn-badjson');
  const { messages } = await replay(t, turn);
  assert.deepEqual(plain(messages(1)).slice(0, 2), plain(turn.requests[1]).slice(0, 2));
});

test('recorded: turn-partial, event for event', async (t) => {
  const turn = recorded('turn-partial');
  const streams = streamsOf(turn);
  const { url, bodies } = await playing(t, streams);
  const agent = createAgent({
    envId: 'x',
    model: { id: 'glm-test', apiBaseUrl: url, apiKey: 'k', maxRetries: 0, restart: 'never' },
    tools: demoTools(),
  });
  t.after(() => agent.close());
  const session = await agent.startSession({ userId: 'ann' });
  const elements = await readStream(session.send(PROMPT));

  const pieces = { text_delta: 'text', thinking_delta: 'thinking' };
  const wanted = streams.map((events) =>
    events.flatMap(({ type, delta, content_block: block }) => {
      if (type === 'content_block_start' && block.type === 'tool_use') {
        return [['call', block.id, block.name]];
      }
      const kind = pieces[delta?.type];
      return kind === undefined ? [] : [[kind, delta[kind]]];
    }),
  );
  const [[id, text]] = resultsOf(turn);
  const result = ['result', id, 'completed', text];
  assert.deepEqual(notesOf(elements, { whole: false }), [...wanted[0], result, ...wanted[1]]);
  assert.deepEqual(endsOf(elements), [[id, 'completed', text]]);
  const { result: answer, usage } = turn.messages.at(-1);
  assert.equal(answer, 'Done.');
  const { inputTokens, outputTokens } = totalsOf(elements);
  assert.deepEqual([inputTokens, outputTokens], [usage.input_tokens, usage.output_tokens]);

  const [thinking] = answersOf(turn)[0];
  assert.equal(bodies.length, 2);
  assert.deepEqual(bodies[1].messages[1].content[0], thinking);
});

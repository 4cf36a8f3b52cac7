/**
 * Scripted turns, one of each kind, that are told in every format of the stream.
 *
 * @module
 */
import { httpError, text, thinking, toolCalls } from '../../emulator/index.js';
import { deferred } from './boundary.js';
import { gatewayFor, tool } from './gateway.js';

/** Two deltas are out after four events. */
const AFTER_TWO_DELTAS = 4;
/** Token counts that do not depend on what is sent. */
const COUNTS = {
  startUsage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 1 },
  usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 7 },
};
const FIRST = { id: 'msg_1', ...COUNTS };
const SECOND = { id: 'msg_2', ...COUNTS };
const THEN_DONE = { when: { hasToolResult: true }, reply: text('Done.', SECOND) };
const lines = (...deltas) => text(deltas, FIRST);

/**
 * A turn: its script, the agent's configuration, and what happens while it is read. `meet` sees
 * each element.
 *
 * @type {Record<string, () => { rules: object[], config?: object, meet?: Function }>}
 */
export const TURNS = {
  text: () => ({ rules: [{ reply: lines('Hello ', 'there.') }] }),

  thinking: () => ({
    rules: [{ reply: thinking('Hm, so.', ['It ', 'is.'], FIRST) }],
  }),

  'parallel tools': () => {
    const secondIsTold = deferred();
    const calls = [
      { id: 'toolu_1', name: 'first', input: { at: 1 } },
      { id: 'toolu_2', name: 'second' },
    ];
    return {
      rules: [THEN_DONE, { reply: toolCalls(calls, { ...FIRST, text: ['Both.'] }) }],
      config: {
        tools: [
          tool('first', () => secondIsTold.promise.then(() => 'one ran'), { readOnly: true }),
          tool('second', () => ({ ran: 'two ran' }), { readOnly: true }),
        ],
      },
      meet: (element) => {
        if (JSON.stringify(element).includes('two ran')) secondIsTold.resolve();
      },
    };
  },

  'a failing tool': () => ({
    rules: [
      THEN_DONE,
      { reply: toolCalls([{ id: 'toolu_1', name: 'save', input: { path: 'a' } }], FIRST) },
    ],
    config: { tools: [tool('save', () => Promise.reject(new Error('the disk is full')))] },
  }),

  'a break after text': () => ({
    rules: [
      {
        times: 1,
        reply: lines('Lost ', 'words', '!'),
        knobs: { truncateAfter: AFTER_TWO_DELTAS },
      },
      { reply: text(['Kept.'], SECOND) },
    ],
  }),

  'an abort in mid text': () => ({
    rules: [{ reply: lines('one ', 'two ', 'three'), knobs: { stallAfter: AFTER_TWO_DELTAS } }],
    meet: (element, session) => {
      if (JSON.stringify(element).includes('two ')) session.abort('enough');
    },
  }),

  'a refused key': () => ({ rules: [{ reply: httpError(401, { message: 'bad key' }) }] }),

  'an error in mid stream': () => ({
    rules: [
      { reply: lines('So ', 'far', '!'), knobs: { errorAfter: { events: AFTER_TWO_DELTAS } } },
    ],
    config: { model: { restart: 'never' } },
  }),
};

/**
 * Runs a turn in a format.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} name of the turn
 * @param {object} config further fields of the agent's configuration
 * @returns {Promise<object[]>} elements
 */
export async function runTurn(t, name, config) {
  const { rules, config: more, meet } = TURNS[name]();
  const { agent } = await gatewayFor(t, { rules, ...more, ...config });
  const session = await agent.startSession({ userId: 'ann', conversationId: 'conv_1' });
  const elements = [];
  for await (const element of session.send('go')) {
    elements.push(element);
    meet?.(element, session);
  }
  await session.settled();
  return elements;
}

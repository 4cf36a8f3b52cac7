/**
 * Runs that are held in a known state, to stop them there.
 *
 * @module
 */
import { httpError, toolCalls } from '../../emulator/index.js';
import { eventually, isText, setUp, tool } from './boundary.js';

const AGAIN = { when: { user: 'again' }, reply: 'Hello again.' };
const RESULTS = { when: { hasToolResult: true }, reply: 'unreachable' };
const CALLS = toolCalls(['slow', 'slow', 'slow'].map((name) => ({ name, input: {} })));

/** Rules that hold a run, and how to see that it is there. */
export const STATES = {
  'before the headers': {
    rules: [{ reply: { text: 'x', knobs: { hangHeaders: true } } }],
    isThere: ({ emulator }) => emulator.requests.length === 1,
  },
  'during text': {
    rules: [{ reply: { text: ['Hel', 'lo'], knobs: { stallAfter: 3 } } }],
    isThere: ({ elements }) => elements.some(isText),
  },
  'during thinking': {
    rules: [{ reply: { thinking: 'hm, hm, hm', text: 'x', knobs: { stallAfter: 3 } } }],
    isThere: ({ elements }) =>
      elements.some(({ sessionUpdate }) => sessionUpdate === 'agent_thought_chunk'),
  },
  'during the input of a tool': {
    rules: [{ reply: { ...CALLS, knobs: { stallAfter: 3 } } }],
    isThere: ({ elements }) => elements.some(({ sessionUpdate }) => sessionUpdate === 'tool_call'),
  },
  'during a tool': {
    rules: [RESULTS, { reply: CALLS }],
    isThere: ({ calls }) => calls.length === 1,
  },
  'during a retry wait': {
    rules: [{ reply: httpError(529, undefined, { 'retry-after': '3600' }) }],
    isThere: ({ emulator }) => emulator.requests[0]?.endedAt !== undefined,
  },
};

/**
 * Starts a run and waits until it is in a state. The tool never settles.
 *
 * @param {import('node:test').TestContext} t
 * @param {string} state key of {@link STATES}
 * @param {object} [options] of `send`
 */
export async function enter(t, state, options) {
  const { rules, isThere } = STATES[state];
  const calls = [];
  const slow = (input, context) => {
    calls.push(context);
    return new Promise(() => {});
  };
  const made = await setUp(t, { rules: [AGAIN, ...rules], tools: [tool('slow', slow)] });
  const stream = made.session.send('hi', options);
  const elements = [];
  const scene = { ...made, stream, elements, calls };
  scene.ended = read(stream, elements);
  // Whoever looks at the end sees a failure; until then it is nobody's.
  scene.ended.catch(() => {});
  await eventually(() => isThere(scene), `the run is ${state}`);
  return scene;
}

async function read(stream, elements) {
  for (;;) {
    const { value, done } = await stream.next();
    if (done) return elements;
    elements.push(value);
  }
}

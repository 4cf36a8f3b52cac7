import { DONE } from '../chat/chunks.js';
import { sseText } from './sse.js';

const BROKEN = '{"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"bro';

/**
 * The stream of the chat completions API. Its events have no names, and nothing in it is a ping:
 * a comment takes its place.
 *
 * @param {object} knobs
 * @returns {import('./messages-wire.js').Wire}
 */
export function chatWire(knobs) {
  const { frame, comment } = sseText(knobs);
  const event = (value) => frame(value === DONE ? DONE : JSON.stringify(value));
  return {
    event,
    ping: () => comment('ping'),
    comment: () => comment('keep-alive'),
    error: (error) => event({ error }),
    broken: () => frame(BROKEN),
    unknownAfter: (value) => (isFirst(value) ? unknownChunks(value).map(event).join('') : ''),
    hugeLine: 'data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"',
    isDelta: (value) => !isFirst(value) && Object.keys(deltaOf(value)).length > 0,
    isEnd: (value) => value === DONE,
  };
}

function deltaOf(value) {
  return value.choices?.[0]?.delta ?? {};
}

function isFirst(value) {
  return 'role' in deltaOf(value);
}

function unknownChunks({ id, model }) {
  const delta = { future_content: { text: 'ignore me' } };
  return [
    { id, object: 'future.object', model, detail: { text: 'ignore me' } },
    { id, object: 'chat.completion.chunk', model, choices: [{ index: 0, delta }] },
  ];
}

import { sseText } from './sse.js';

/**
 * @typedef {object} Wire how a protocol writes its stream, and what else may appear in it
 * @property {(event: object | string) => string} event
 * @property {() => string} ping
 * @property {() => string} comment
 * @property {(error: object) => string} error an error inside the stream
 * @property {() => string} broken an event whose data is broken JSON
 * @property {(event: object | string) => string} unknownAfter what only a later version of the
 *   protocol could send after this event; mostly nothing
 * @property {string} hugeLine beginning of a line that will not end
 * @property {(event: object | string) => boolean} isDelta
 * @property {(event: object | string) => boolean} isEnd whether the event does nothing but close
 */

const BROKEN = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"bro';

/**
 * The stream of the Messages API.
 *
 * @param {object} knobs
 * @returns {Wire}
 */
export function messagesWire(knobs) {
  const { frame, comment } = sseText(knobs);
  const event = (value) => frame(JSON.stringify(value), value.type);
  return {
    event,
    ping: () => event({ type: 'ping' }),
    comment: () => comment('keep-alive'),
    error: (error) => event({ type: 'error', error }),
    broken: () => frame(BROKEN, 'content_block_delta'),
    unknownAfter: (value) => {
      const unknown = UNKNOWN[value.type]?.(value);
      return unknown ? event(unknown) : '';
    },
    hugeLine: 'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":"',
    isDelta: ({ type }) => type === 'content_block_delta',
    isEnd: ({ type }) => type === 'message_stop',
  };
}

const UNKNOWN = {
  message_start: () => ({ type: 'future_event', detail: { text: 'ignore me' } }),
  content_block_start: ({ index }) => ({
    type: 'content_block_delta',
    index,
    delta: { type: 'future_delta', text: 'ignore me' },
  }),
};

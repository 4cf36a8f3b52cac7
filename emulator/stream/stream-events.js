import { brokenFrame, commentFrame, sseEncoder } from './sse-encoder.js';
import { hold, pause } from './wait.js';

const PING = { type: 'ping' };

/**
 * Streams the events of an answer as SSE and plays the faults that the knobs ask for. Faults count
 * the events of the answer itself; pings, comments and unknown events in between do not count, so
 * that a fault stays at its place whatever else is switched on.
 *
 * @param {Iterable<object>} events
 * @param {import('./body-writer.js').BodyWriter} body
 * @param {object} knobs
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether the whole answer was written
 */
export async function streamEvents(events, body, knobs, signal) {
  const encode = sseEncoder(knobs);
  const eachFlushed = knobs.chunkDelayMs > 0;
  let waitsForDelta = knobs.firstDeltaMs > 0;
  let count = 0;
  for (const event of events) {
    if (await playFault(count, body, knobs, signal, encode)) return false;
    if (knobs.noMessageStop && event.type === 'message_stop') break;
    if (waitsForDelta && event.type === 'content_block_delta') {
      waitsForDelta = false;
      await body.flush();
      await pause(knobs.firstDeltaMs, signal);
    }
    if (eachFlushed && count > 0) await pause(knobs.chunkDelayMs, signal);
    const full = body.add(encode(event));
    count += 1;
    if (addExtras(event, count, body, knobs, encode) || full || eachFlushed) await body.flush();
    if (body.finished) break;
  }
  if (await playFault(count, body, knobs, signal, encode)) return false;
  const whole = !body.finished && !knobs.noMessageStop;
  await body.end();
  return whole;
}

/** Adds what knobs put between the events; tells whether the batch became full. */
function addExtras(event, count, body, knobs, encode) {
  let full = false;
  if (knobs.comments) full = body.add(commentFrame(knobs)) || full;
  if (knobs.pings > 0 && count % knobs.pings === 0) full = body.add(encode(PING)) || full;
  if (knobs.unknownEvents && event.type === 'message_start') {
    full = body.add(encode({ type: 'future_event', detail: { text: 'ignore me' } })) || full;
  }
  if (knobs.unknownEvents && event.type === 'content_block_start') {
    const delta = { type: 'future_delta', text: 'ignore me' };
    full = body.add(encode({ type: 'content_block_delta', index: event.index, delta })) || full;
  }
  return full;
}

/** Plays the fault that is due after `count` events; tells whether it ended the stream. */
async function playFault(count, body, knobs, signal, encode) {
  if (knobs.invalidJsonAfter === count) body.add(brokenFrame(knobs));
  if (knobs.errorAfter?.events === count) {
    body.add(encode({ type: 'error', error: streamError(knobs.errorAfter.error) }));
    await body.end();
    return true;
  }
  if (knobs.truncateAfter === count) {
    await body.end();
    return true;
  }
  if (knobs.resetAfter === count) {
    await body.destroy();
    return true;
  }
  if (knobs.stallAfter === count) {
    await body.flush();
    await stall(body, knobs, signal, encode);
    return true;
  }
  if (knobs.hugeLine !== undefined && count === 1) {
    await writeHugeLine(body, knobs.hugeLine);
    return true;
  }
  return false;
}

function streamError(error) {
  return { type: 'overloaded_error', message: 'Overloaded', ...error };
}

async function stall(body, { stallPings }, signal, encode) {
  if (stallPings === undefined) return hold(signal);
  while (!signal.aborted) {
    await pause(stallPings, signal);
    body.add(encode(PING));
    await body.flush();
  }
}

/** One `data:` line that never ends: a reader without a limit would keep all of it in memory. */
async function writeHugeLine(body, bytes) {
  const piece = 'a'.repeat(16 * 1024);
  body.add('event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":"');
  for (let left = bytes; left > 0 && !body.finished; left -= piece.length) {
    body.add(piece.slice(0, Math.min(left, piece.length)));
    await body.flush();
  }
  await body.end();
}

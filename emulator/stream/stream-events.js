import { hold, pause } from './wait.js';

/**
 * Streams the events of an answer as SSE and plays the faults that the knobs ask for. Faults count
 * the events of the answer itself; pings, comments and unknown events in between do not count, so
 * that a fault stays at its place whatever else is switched on.
 *
 * @param {Iterable<object | string>} events
 * @param {import('./messages-wire.js').Wire} wire
 * @param {import('./body-writer.js').BodyWriter} body
 * @param {object} knobs
 * @param {AbortSignal} signal
 * @returns {Promise<boolean>} whether the whole answer was written
 */
export async function streamEvents(events, wire, body, knobs, signal) {
  const eachFlushed = knobs.chunkDelayMs > 0;
  let waitsForDelta = knobs.firstDeltaMs > 0;
  let count = 0;
  for (const event of events) {
    if (await playFault(count, wire, body, knobs, signal)) return false;
    if (knobs.noMessageStop && wire.isEnd(event)) break;
    if (waitsForDelta && wire.isDelta(event)) {
      waitsForDelta = false;
      await body.flush();
      await pause(knobs.firstDeltaMs, signal);
    }
    if (eachFlushed && count > 0) await pause(knobs.chunkDelayMs, signal);
    count += 1;
    const full = body.add(wire.event(event) + extras(event, count, wire, knobs));
    if (full || eachFlushed) await body.flush();
    if (body.finished) break;
  }
  if (await playFault(count, wire, body, knobs, signal)) return false;
  const whole = !body.finished && !knobs.noMessageStop;
  await body.end();
  return whole;
}

/** What knobs put behind an event. */
function extras(event, count, wire, { comments, pings, unknownEvents }) {
  let text = comments ? wire.comment() : '';
  if (pings > 0 && count % pings === 0) text += wire.ping();
  if (unknownEvents) text += wire.unknownAfter(event);
  return text;
}

/** Plays the fault that is due after `count` events; tells whether it ended the stream. */
async function playFault(count, wire, body, knobs, signal) {
  if (knobs.invalidJsonAfter === count) body.add(wire.broken());
  if (knobs.errorAfter?.events === count) {
    body.add(wire.error(streamError(knobs.errorAfter.error)));
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
    await stall(wire, body, knobs, signal);
    return true;
  }
  if (knobs.hugeLine !== undefined && count === 1) {
    await writeHugeLine(wire, body, knobs.hugeLine);
    return true;
  }
  return false;
}

function streamError(error) {
  return { type: 'overloaded_error', message: 'Overloaded', ...error };
}

async function stall(wire, body, { stallPings }, signal) {
  if (stallPings === undefined) return hold(signal);
  while (!signal.aborted) {
    await pause(stallPings, signal);
    body.add(wire.ping());
    await body.flush();
  }
}

/** One `data:` line that never ends: a reader without a limit would keep all of it in memory. */
async function writeHugeLine(wire, body, bytes) {
  const piece = 'a'.repeat(16 * 1024);
  body.add(wire.hugeLine);
  for (let left = bytes; left > 0 && !body.finished; left -= piece.length) {
    body.add(piece.slice(0, Math.min(left, piece.length)));
    await body.flush();
  }
  await body.end();
}

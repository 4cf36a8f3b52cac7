/**
 * Waits, but not longer than the request lives.
 *
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>} resolves early when the signal fires
 */
export function pause(ms, signal) {
  return untilAborted(signal, (done) => {
    const timer = setTimeout(done, ms);
    return () => clearTimeout(timer);
  });
}

/**
 * Waits until the client or the emulator gives up.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function hold(signal) {
  return untilAborted(signal, () => () => {});
}

/**
 * Lets the event loop turn once, so that what was written so far leaves as a packet of its own.
 *
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function nextTurn(signal) {
  return untilAborted(signal, (done) => {
    const immediate = setImmediate(done);
    return () => clearImmediate(immediate);
  });
}

/**
 * Waits for one event of an emitter.
 *
 * @param {import('node:events').EventEmitter} emitter
 * @param {string} name
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export function eventOf(emitter, name, signal) {
  return untilAborted(signal, (done) => {
    emitter.once(name, done);
    return () => emitter.off(name, done);
  });
}

function untilAborted(signal, start) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    let cancel = () => {};
    const done = () => {
      signal.removeEventListener('abort', done);
      cancel();
      resolve();
    };
    signal.addEventListener('abort', done);
    cancel = start(done);
  });
}

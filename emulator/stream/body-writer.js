import { eventOf, nextTurn, pause } from './wait.js';

/** Batches stay below this many characters: large enough to be cheap, small enough to flow. */
const BATCH = 16 * 1024;

/**
 * Writes the body of a response: in large batches normally, in exact pieces when a knob asks for
 * it. Everything is counted in bytes of the body, not of the transfer encoding.
 */
export class BodyWriter {
  #exchange;
  #response;
  #signal;
  #pending = '';
  #written = 0;
  #limit;
  #cuts;
  #step;
  #splitDelayMs;

  /**
   * @param {import('../server/exchange.js').Exchange} exchange
   * @param {object} knobs
   */
  constructor(exchange, knobs) {
    this.#exchange = exchange;
    this.#response = exchange.response;
    this.#signal = exchange.signal;
    this.#limit = knobs.truncateBytes ?? Infinity;
    this.#cuts = [...(knobs.splitAt ?? [])].sort((a, b) => a - b);
    this.#step = knobs.splitBytes ?? Infinity;
    this.#splitDelayMs = knobs.splitDelayMs ?? 0;
  }

  /** Whether nothing more will be written: the client has gone or the body was cut. */
  get finished() {
    return this.#signal.aborted || this.#written >= this.#limit;
  }

  /**
   * Adds text to the current batch.
   *
   * @param {string} text
   * @returns {boolean} whether the batch is full and {@link flush} is due
   */
  add(text) {
    this.#pending += text;
    return this.#pending.length >= BATCH;
  }

  /** Writes the current batch and waits until there is room for more. */
  async flush() {
    const text = this.#pending;
    this.#pending = '';
    if (text === '' || this.finished) return;
    if (!this.#countsBytes()) {
      if (!this.#response.write(text)) await eventOf(this.#response, 'drain', this.#signal);
      return;
    }
    let bytes = Buffer.from(text, 'utf8');
    while (bytes.length > 0 && !this.finished) {
      const size = Math.min(bytes.length, this.#nextCut() - this.#written);
      await this.#writePiece(bytes.subarray(0, size));
      bytes = bytes.subarray(size);
    }
  }

  /** Writes what is pending and ends the body properly. */
  async end() {
    await this.flush();
    if (!this.#signal.aborted) this.#response.end();
  }

  /** Writes what is pending, then closes the socket in the middle of the body. */
  async destroy() {
    await this.flush();
    // The pending bytes must reach the kernel of the operating system before the socket goes.
    await nextTurn(this.#signal);
    this.#exchange.destroy();
  }

  #countsBytes() {
    return this.#limit !== Infinity || this.#step !== Infinity || this.#cuts.length > 0;
  }

  #nextCut() {
    const step =
      this.#step === Infinity
        ? Infinity
        : (Math.floor(this.#written / this.#step) + 1) * this.#step;
    const cut = this.#cuts.find((offset) => offset > this.#written) ?? Infinity;
    return Math.min(step, cut, this.#limit);
  }

  async #writePiece(piece) {
    this.#written += piece.length;
    if (!this.#response.write(piece)) await eventOf(this.#response, 'drain', this.#signal);
    if (this.#splitDelayMs > 0) await pause(this.#splitDelayMs, this.#signal);
    else await nextTurn(this.#signal);
  }
}

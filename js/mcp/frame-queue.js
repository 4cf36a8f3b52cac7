/**
 * Frames of a server that one client has not fetched yet.
 *
 * @module
 */
import { toJson } from '../json.js';

/** Notifications that wait at most: a server may tell faster than anybody listens. */
const MAX_NOTES = 1_000;
const MAX_NOTE_CHARACTERS = 4 << 20;
/** Characters of a batch, which has one frame at least. */
const MAX_BATCH_CHARACTERS = 8 << 20;

/**
 * Frames are kept as text: a server may go on using its objects. Answers and requests are never
 * dropped, and there are no more of them than calls in flight; notifications are, when too many wait.
 */
export class FrameQueue {
  #frames = [];
  #notes = 0;
  #noteCharacters = 0;
  /** The news that a list has changed, once however often it was told. */
  #news = new Set();
  #ended = false;
  #wake;

  /**
   * Adds an answer or a request.
   *
   * @param {object} frame
   * @throws when it is not JSON
   */
  put(frame) {
    this.#add({ text: toJson(frame), isNote: false });
  }

  /** Adds a notification that may be dropped, as text. */
  note(text) {
    const characters = this.#noteCharacters + text.length;
    if (this.#notes >= MAX_NOTES || characters > MAX_NOTE_CHARACTERS) return;
    this.#notes += 1;
    this.#noteCharacters = characters;
    this.#add({ text, isNote: true });
  }

  /** Adds a notification without content, which comes once, after all that waits. */
  announce(method) {
    this.#news.add(method);
    this.#wake?.();
  }

  /** Says that nothing more comes. */
  end() {
    this.#ended = true;
    this.#wake?.();
  }

  /**
   * Waits for frames.
   *
   * @param {AbortSignal} signal ends the wait without frames
   * @returns {Promise<string[] | null>} texts of frames; null when the last one was fetched
   */
  async receive(signal) {
    if (this.#isEmpty && !this.#ended && !signal.aborted) await this.#more(signal);
    if (!this.#isEmpty) return this.#batch();
    return this.#ended ? null : [];
  }

  get #isEmpty() {
    return this.#frames.length === 0 && this.#news.size === 0;
  }

  #add(frame) {
    if (this.#ended) return;
    this.#frames.push(frame);
    this.#wake?.();
  }

  async #more(signal) {
    // A wait that was given up must not take the frames of the next one.
    this.#wake?.();
    await new Promise((resolve) => {
      this.#wake = resolve;
      signal.addEventListener('abort', resolve, { once: true });
    });
  }

  #batch() {
    let characters = 0;
    let count = 0;
    while (count < this.#frames.length && (count === 0 || characters < MAX_BATCH_CHARACTERS)) {
      characters += this.#frames[count].text.length;
      count += 1;
    }
    const taken = this.#frames.splice(0, count);
    for (const { text, isNote } of taken) {
      if (!isNote) continue;
      this.#notes -= 1;
      this.#noteCharacters -= text.length;
    }
    return [
      ...taken.map(({ text }) => text),
      ...(this.#frames.length === 0 ? this.#takeNews() : []),
    ];
  }

  #takeNews() {
    const news = [...this.#news];
    this.#news.clear();
    return news.map((method) => toJson({ jsonrpc: '2.0', method }));
  }
}

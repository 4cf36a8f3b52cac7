/**
 * Frames of a server that one client has not fetched yet.
 *
 * @module
 */
import { toJson } from '../json.js';

/** What may wait at most of a kind: a server may say more than anybody listens to. */
const MAX_FRAMES = 1_000;
const MAX_CHARACTERS = 4 << 20;
/** Characters of a batch, which has one frame at least. */
const MAX_BATCH_CHARACTERS = 8 << 20;

/**
 * Frames are kept as text: a server may go on using its objects. Answers are never refused, and there
 * are no more of them than calls in flight.
 */
export class FrameQueue {
  #frames = [];
  #notes = new Room();
  #requests = new Room();
  /** The news that a list has changed, once however often it was told. */
  #news = new Set();
  #ended = false;
  #wake;

  /** @param {string} text of an answer */
  answer(text) {
    this.#add({ text });
  }

  /** @param {string} text of a notification, which is dropped when there is no room */
  note(text) {
    if (this.#notes.take(text)) this.#add({ text, room: this.#notes });
  }

  /**
   * @param {string} text of a request
   * @returns {boolean} whether there was room
   */
  ask(text) {
    const hasRoom = this.#requests.take(text);
    if (hasRoom) this.#add({ text, room: this.#requests });
    return hasRoom;
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
    while (count < this.#frames.length && characters < MAX_BATCH_CHARACTERS) {
      characters += this.#frames[count].text.length;
      count += 1;
    }
    const taken = this.#frames.splice(0, count);
    for (const { text, room } of taken) room?.leave(text);
    const news = this.#frames.length === 0 ? this.#takeNews() : [];
    return [...taken.map(({ text }) => text), ...news];
  }

  #takeNews() {
    const news = [...this.#news];
    this.#news.clear();
    return news.map((method) => toJson({ jsonrpc: '2.0', method }));
  }
}

/** How much of a kind may still wait. */
class Room {
  #frames = MAX_FRAMES;
  #characters = MAX_CHARACTERS;

  /** @returns {boolean} whether there was room */
  take({ length }) {
    if (this.#frames < 1 || this.#characters < length) return false;
    this.#frames -= 1;
    this.#characters -= length;
    return true;
  }

  leave({ length }) {
    this.#frames += 1;
    this.#characters += length;
  }
}

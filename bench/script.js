/**
 * What the scripted server answers: the same to every contender.
 *
 * @module
 */

/** 12 characters: one delta of the emulator. */
const WORDS = 'twelve chars';
/** Deltas of the answer that is never read to its end. */
const SLOW_CHUNKS = 2_000;

/** Prompts by the answer they get. */
export const PROMPTS = {
  /** One chunk. */
  short: 'a short answer',
  /** Many chunks as fast as the server can write, some hundred in each write. */
  stream: 'a long answer',
  /** Many chunks, one in each write. */
  trickle: 'a long answer in small pieces',
  /** Fewer chunks, one a millisecond: a fast model. */
  paced: 'an answer at the speed of a model',
  /** A chunk every 5 ms. */
  slow: 'an answer without end',
};

/**
 * The rules of the emulator.
 *
 * @param {number} chunks deltas of the long answers
 * @returns {object[]}
 */
export function rules(chunks) {
  const long = { text: WORDS, repeat: chunks };
  const answer = (prompt, reply) => ({ when: { user: { regex: `^${prompt}$` } }, reply });
  return [
    answer(PROMPTS.short, WORDS),
    answer(PROMPTS.stream, long),
    answer(PROMPTS.trickle, long),
    answer(PROMPTS.paced, { ...long, repeat: chunks / 10 }),
    answer(PROMPTS.slow, { text: WORDS, repeat: SLOW_CHUNKS, knobs: { chunkDelayMs: 5 } }),
  ];
}

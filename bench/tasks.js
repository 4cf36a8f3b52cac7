/**
 * What a contender is asked to do, inside its own process.
 *
 * @module
 */
import { setTimeout as sleep } from 'node:timers/promises';

import { cpuUs } from './process-tree.js';
import { PROMPTS } from './script.js';

/**
 * @typedef {object} Client a contender
 * @property {() => Promise<Conversation>} conversation
 * @property {() => Promise<unknown>} [settled] resolves when nothing of past sends is left at work
 *
 * @typedef {object} Conversation
 * @property {(prompt: string, on: {
 *   onText: (text: string) => void,
 *   onError?: (error: object) => void,
 *   signal?: AbortSignal,
 * }) => Promise<void>} send resolves when the answer was read to its end
 */

/** Times from `send` to the first chunk. */
export async function firstChunks(client, { samples }) {
  await answer(client, PROMPTS.short);
  const times = [];
  for (let left = samples; left > 0; left -= 1) {
    await client.settled?.();
    times.push((await answer(client, PROMPTS.short)).first);
  }
  return times;
}

/**
 * One long answer: time, processor time of all threads and children, chunks, crossings into the
 * core.
 */
export async function stream(client, { prompt, crossings = () => 0 }) {
  await answer(client, PROMPTS.short);
  await client.settled?.();
  const [before, cpu] = [crossings(), cpuUs()];
  const { chunks, total } = await answer(client, prompt);
  await client.settled?.();
  return { ms: total, cpuUs: cpuUs() - cpu, chunks, crossings: crossings() - before };
}

/** Several long answers at once: time until the last one ended. */
export async function concurrent(client, { sends }) {
  await answer(client, PROMPTS.short);
  await client.settled?.();
  const start = performance.now();
  const answers = await Promise.all(
    Array.from({ length: sends }, () => answer(client, PROMPTS.stream)),
  );
  const chunks = answers.reduce((sum, each) => sum + each.chunks, 0);
  return { ms: performance.now() - start, chunks };
}

/** Times from `send` to the error. */
export async function refusals(client, { samples }) {
  const times = [];
  for (let left = samples; left > 0; left -= 1) {
    times.push((await answer(client, PROMPTS.short)).error);
  }
  return times;
}

/** Times from the abort, at the first chunk, to the end of the answer. */
export async function aborts(client, { samples }) {
  const times = [];
  for (let left = samples; left > 0; left -= 1) times.push(await abortOne(client));
  return times;
}

async function abortOne(client) {
  const conversation = await client.conversation();
  const controller = new AbortController();
  let start;
  const onText = () => {
    if (start !== undefined) return;
    start = performance.now();
    controller.abort();
  };
  const sending = conversation.send(PROMPTS.slow, { onText, signal: controller.signal });
  await sending.catch((error) => {
    if (error.name !== 'AbortError') throw error;
  });
  return performance.now() - start;
}

const kept = [];

/** Opens conversations, has one answer in each and keeps them; what the process then holds. */
export async function idle(client, { sessions, atOnce = 20 }) {
  for (let left = sessions; left > 0; left -= atOnce) {
    const some = Array.from({ length: Math.min(left, atOnce) }, async () => {
      const conversation = await client.conversation();
      await answer({ conversation: () => conversation }, PROMPTS.short);
      return conversation;
    });
    kept.push(...(await Promise.all(some)));
  }
  await sleep(300);
  globalThis.gc();
  await sleep(100);
  globalThis.gc();
  const { rss, heapUsed, external } = process.memoryUsage();
  return { rss, heap: heapUsed + external };
}

async function answer(client, prompt) {
  const conversation = await client.conversation();
  const start = performance.now();
  const result = { chunks: 0, first: undefined, error: undefined };
  await conversation.send(prompt, {
    onText() {
      result.first ??= performance.now() - start;
      result.chunks += 1;
    },
    onError() {
      result.error ??= performance.now() - start;
    },
  });
  return { ...result, total: performance.now() - start };
}

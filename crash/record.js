/**
 * Runs that are not killed, to learn how often each point is passed and how long a run takes.
 *
 * @module
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { ScriptError } from '../scripts/run.js';

const RUNS = 4;

/**
 * @typedef {object} Recording
 * @property {Map<string, number>} passes most passes of each point in one run
 * @property {number} readyMs the shortest time until a process is ready to work
 * @property {number} ms the longest run
 */

/**
 * Records first processes, and processes that resume what one left that was killed in a tool.
 *
 * @param {import('./stage.js').Stage} stage
 * @param {string[]} points
 * @returns {Promise<{ start: Recording, resume: Recording }>}
 */
export async function record(stage, points) {
  const [start, resume] = [newRecording(), newRecording()];
  for (let run = 0; run < RUNS; run += 1) {
    const log = join(stage.folder, `passes-${run}`);
    await observe(start, stage, stage.newConversation(run), { log });
    const left = stage.newConversation(run);
    await stage.run(left, { point: 'turn.tool.started', pass: 1 });
    await observe(resume, stage, left, { log: `${log}-resume` });
  }
  if (start.passes.size === 0) {
    throw new ScriptError('the addon has no crash points: build it with `npm run build`');
  }
  const never = points.filter((point) => !start.passes.has(point));
  if (never.length) {
    throw new ScriptError(`points that a run never passes, so never hit: ${never.join(', ')}`);
  }
  return { start, resume };
}

function newRecording() {
  return { passes: new Map(), readyMs: Infinity, ms: 0 };
}

async function observe(recording, stage, conversation, { log }) {
  const life = await stage.run(conversation, { log });
  if (life.code !== 0) {
    const told = life.events.map((event) => JSON.stringify(event)).join('\n');
    throw new ScriptError(`a run that nobody killed failed:\n${told}\n${life.stderr}`);
  }
  recording.readyMs = Math.min(recording.readyMs, life.readyMs);
  recording.ms = Math.max(recording.ms, life.ms);
  const counts = new Map();
  for (const point of readPasses(log)) counts.set(point, (counts.get(point) ?? 0) + 1);
  for (const [point, count] of counts) {
    recording.passes.set(point, Math.max(count, recording.passes.get(point) ?? 0));
  }
}

function readPasses(log) {
  try {
    return readFileSync(log, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

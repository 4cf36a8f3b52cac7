/**
 * Kills processes until enough are dead, and counts what went wrong.
 *
 * @module
 */
import { availableParallelism } from 'node:os';

import { easier, plan, spell } from './plan.js';
import { pointsOf } from './points.js';
import { seeded } from './random.js';
import { record } from './record.js';
import { SCENARIOS } from './scenarios.js';
import { Stage } from './stage.js';

/** Processes at a time. */
const WORKERS = Math.min(2, availableParallelism());
/** Tries at a kill that does not happen. */
const TRIES = 8;

/**
 * What a harness has found.
 *
 * @typedef {object} Tally
 * @property {number} kills
 * @property {Record<'lost' | 'repeated' | 'invalid' | 'mixed' | 'unknown', number>} counts
 * @property {Map<string, number>} hits kills at each point
 * @property {string[]} faults what went wrong, with the kills before it
 * @property {string[]} missed kills that never happened
 */

/**
 * @param {{ scenario: string, driver: string, kills: number, seed: number }} options
 * @param {(line: string) => void} say
 * @returns {Promise<Tally>}
 */
export async function runHarness({ scenario, driver, kills, seed }, say) {
  const points = pointsOf(scenario, driver);
  // Each point is hit at least once, and some kills are left for other times.
  const goal = Math.max(kills, points.length + 3);
  const { judge } = SCENARIOS[scenario];
  const stage = await Stage.open(SCENARIOS[scenario], driver);
  try {
    const recorded = await record(stage, points);
    say(`${scenario} on ${driver}: ${points.length} points, ${passes(recorded)}, seed ${seed}`);
    const random = seeded(seed);
    const tally = newTally(points);
    const jobs = plan(points, recorded, random);
    let turns = 0;
    const work = async () => {
      for (let left; (left = goal - tally.kills - tally.planned - tally.missed.length) > 0;) {
        const kills = jobs.next().value.slice(0, left);
        tally.planned += kills.length;
        await runJob(stage, { kills, judge, turn: (turns += 1) }, tally);
        tally.planned -= kills.length;
      }
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    return tally;
  } finally {
    await stage.close();
  }
}

function passes({ start, resume }) {
  const sum = (recording) => [...recording.passes.values()].reduce((all, count) => all + count, 0);
  return `${sum(start)} passes in a turn of ${Math.round(start.ms - start.readyMs)} ms, ${sum(resume)} in a resumed one`;
}

function newTally(points) {
  return {
    kills: 0,
    planned: 0,
    counts: { lost: 0, repeated: 0, invalid: 0, mixed: 0, unknown: 0 },
    hits: new Map(points.map((point) => [point, 0])),
    faults: [],
    missed: [],
  };
}

/** One conversation: its processes are killed as planned, then the last one may end. */
async function runJob(stage, { kills, judge, turn }, tally) {
  let wanted = kills;
  let done = 0;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const conversation = stage.newConversation(turn + tries);
    const late = await killAll(stage, conversation, wanted, tally, done);
    if (late === undefined) await stage.run(conversation);
    settle(judge(stage.trial(conversation)), conversation, wanted, tally);
    if (late === undefined) return;
    done = Math.max(done, late);
    // What is left of the job; a process that resumes needs one that was killed.
    wanted = wanted.map((kill, at) => (at === late ? easier(kill, tries + 1) : kill));
  }
  tally.missed.push(wanted.map(spell).join(', '));
}

/** Gives the place of the first kill that did not happen. The first `done` were counted before. */
async function killAll(stage, conversation, kills, tally, done) {
  for (const [at, kill] of kills.entries()) {
    const { killed } = await stage.run(conversation, kill);
    if (!killed) return at;
    if (at >= done) tally.kills += 1;
    if (kill.point !== undefined) tally.hits.set(kill.point, tally.hits.get(kill.point) + 1);
  }
  return undefined;
}

function settle({ faults, unknown }, { id }, kills, { counts, faults: all }) {
  counts.unknown += unknown;
  for (const { kind, what } of faults) {
    counts[kind] += 1;
    all.push(`${kind}: ${id} (killed at ${kills.map(spell).join(', ')}): ${what}`);
  }
}

/**
 * Spreads the kills over all points, all their passes, random times, and processes that resume.
 *
 * @module
 */

/**
 * Where one process is killed: at a pass of a point, or from outside.
 *
 * @typedef {{ point: string, pass: number } | { afterMs: number }} Kill
 */

const LOAD = 1.5;

/** What is killed behind the first round over the points. */
const ROUND = ['outside', 'resume', 'pass', 'pass', 'resume-outside', 'pass'];

/**
 * Makes kills without end: first each point once, then rounds.
 *
 * @param {string[]} points
 * @param {{ start: Recording, resume: Recording }} recorded
 * @param {ReturnType<typeof import('./random.js').seeded>} random
 * @yields {Kill[]} kills of the processes of one conversation, in order
 */
export function* plan(points, recorded, random) {
  // Processes that share the machine are slower than the recorded ones.
  const outside = ({ readyMs, ms }) => ({
    afterMs: Math.floor(readyMs + random.below((ms - readyMs) * LOAD)),
  });
  const anyPass = (point) => ({ point, pass: 1 + random.below(recorded.start.passes.get(point)) });
  for (const point of random.shuffled(points)) yield [anyPass(point)];
  const starts = endless(() => random.shuffled(everyPass(points, recorded.start)));
  const resumes = endless(() => random.shuffled(everyPass(points, recorded.resume)));
  const makers = {
    outside: () => [outside(recorded.start)],
    pass: () => [starts.next().value],
    resume: () => [starts.next().value, resumes.next().value],
    'resume-outside': () => [outside(recorded.start), outside(recorded.resume)],
  };
  for (;;) for (const name of ROUND) yield makers[name]();
}

/**
 * Another try at a kill that did not happen: how often a point is passed depends on the settings of the
 * database, and a little on time.
 *
 * @param {Kill} kill
 * @param {number} tries how often it was tried
 * @returns {Kill}
 */
export function easier(kill, tries) {
  if (kill.point === undefined) return { afterMs: Math.floor(kill.afterMs * 0.6) };
  // The first time, other settings are tried with the same pass.
  return tries % 2 ? kill : { ...kill, pass: Math.max(1, kill.pass - 1) };
}

/** @param {Kill} kill */
export function spell({ point, pass, afterMs }) {
  return point === undefined ? `after ${afterMs} ms` : `${point}:${pass}`;
}

function everyPass(points, { passes }) {
  return points.flatMap((point) =>
    Array.from({ length: passes.get(point) ?? 0 }, (_, at) => ({ point, pass: at + 1 })),
  );
}

function* endless(fill) {
  for (;;) yield* fill();
}

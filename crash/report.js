/**
 * What the harness says at its end.
 *
 * @module
 */
const MOST_FAULTS = 50;

/**
 * @param {import('./harness.js').Tally} tally
 * @returns {{ lines: string[], ok: boolean }} the last line has the counts
 */
export function report({ kills, counts, hits, faults, missed }) {
  const never = [...hits].filter(([, count]) => count === 0).map(([point]) => point);
  const { lost, repeated, invalid, mixed, unknown } = counts;
  const lines = [
    ...faults.slice(0, MOST_FAULTS),
    ...missed.map((kill) => `a kill that never happened: ${kill}`),
    `points hit: ${[...hits].map(([point, count]) => `${point} ${count}`).join(', ')}`,
    `points never hit: ${never.join(', ') || 'none'}`,
    `kills=${kills} lost=${lost} repeated=${repeated} invalid=${invalid} mixed=${mixed} unknown=${unknown}`,
  ];
  const ok = lost + repeated + invalid + mixed + never.length + missed.length === 0;
  return { lines, ok };
}

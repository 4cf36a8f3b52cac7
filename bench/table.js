/**
 * The table and what stands around it.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os';

/**
 * @typedef {object} Row
 * @property {string} what
 * @property {string} [floor]
 * @property {string} ours
 * @property {string} [ratio]
 * @property {string} [bar]
 * @property {boolean} [met]
 * @property {number} [samples]
 */

const COLUMNS = {
  What: (row) => row.what,
  Floor: (row) => row.floor ?? '',
  Ours: (row) => row.ours ?? '',
  Ratio: (row) => row.ratio ?? '',
  Bar: (row) => row.bar ?? '',
  Met: (row) => (row.bar === undefined ? '' : row.met ? 'yes' : '**no**'),
  Samples: (row) => String(row.samples ?? ''),
};

/**
 * @param {Row[]} rows
 * @returns {string} a Markdown table with aligned columns
 */
export function table(rows) {
  const columns = Object.entries(COLUMNS).map(([title, cell]) => {
    const cells = [title, ...rows.map(cell)];
    return { cells, width: Math.max(...cells.map((text) => text.length)) };
  });
  const line = (at) => `| ${columns.map((c) => c.cells[at].padEnd(c.width)).join(' | ')} |`;
  const rule = `| ${columns.map((c) => '-'.repeat(c.width)).join(' | ')} |`;
  return [line(0), rule, ...rows.map((_, at) => line(at + 1))].join('\n');
}

/** @returns {string} where and when, as a Markdown list; taken before the runs */
export function circumstances() {
  const cpu = cpus()[0]?.model.trim() ?? 'unknown processor';
  return [
    `- ${new Date().toISOString().slice(0, 10)}, ${type()} ${release()}`,
    `- ${cpu}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `- Node.js ${process.versions.node}, ${rustc()}`,
    `- load of the machine before the runs: ${loadavg()[0].toFixed(2)}`,
  ].join('\n');
}

function rustc() {
  try {
    return execFileSync('rustc', ['--version'], { encoding: 'utf8' }).trim();
  } catch {
    return 'no rustc';
  }
}

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

/**
 * @typedef {object} PeerRow
 * @property {string} what
 * @property {string} peer
 * @property {string} [floor]
 * @property {string} [ours]
 * @property {string} [theirs]
 * @property {string} [ratio] ours by theirs
 * @property {string} [byFloor] theirs by the floor
 * @property {string} [bar]
 * @property {boolean} [met]
 * @property {number} [samples] of the peer
 */

const OWN = {
  What: (row) => row.what,
  Floor: (row) => row.floor ?? '',
  Ours: (row) => row.ours ?? '',
  Ratio: (row) => row.ratio ?? '',
  Bar: (row) => row.bar ?? '',
  Met: met,
  Samples: (row) => String(row.samples ?? ''),
};

const PEERS = {
  What: (row) => row.what,
  Peer: (row) => row.peer,
  Floor: (row) => row.floor ?? '',
  Ours: (row) => row.ours ?? '',
  Theirs: (row) => row.theirs ?? '',
  'Ours / theirs': (row) => row.ratio ?? '',
  'Theirs / floor': (row) => row.byFloor ?? '',
  Bar: (row) => row.bar ?? '',
  Met: met,
  Samples: (row) => String(row.samples ?? ''),
};

/** @returns {string} the table of the kernel and the floor */
export const ownTable = (rows) => table(OWN, rows);

/** @returns {string} the table of the kernel and the peers */
export const peerTable = (rows) => table(PEERS, rows);

function met(row) {
  if (row.bar === undefined) return '';
  return row.met ? 'yes' : '**no**';
}

/** @returns {string} a Markdown table with aligned columns */
function table(titles, rows) {
  const columns = Object.entries(titles).map(([title, cell]) => {
    const cells = [title, ...rows.map(cell)];
    return { cells, width: Math.max(...cells.map((text) => text.length)) };
  });
  const line = (at) => `| ${columns.map((c) => c.cells[at].padEnd(c.width)).join(' | ')} |`;
  const rule = `| ${columns.map((c) => '-'.repeat(c.width)).join(' | ')} |`;
  return [line(0), rule, ...rows.map((_, at) => line(at + 1))].join('\n');
}

/**
 * @param {string[]} versions of what is measured besides the kernel
 * @returns {string} where, when and what, as a Markdown list; taken before the runs
 */
export function circumstances(versions) {
  const cpu = cpus()[0]?.model.trim() ?? 'unknown processor';
  return [
    `- ${new Date().toISOString().slice(0, 10)}, ${type()} ${release()}`,
    `- ${cpu}, ${availableParallelism()} cores, ${Math.round(totalmem() / 2 ** 30)} GB of memory`,
    `- Node.js ${process.versions.node}, ${rustc()}`,
    `- load of the machine before the runs: ${loadavg()[0].toFixed(2)}`,
    ...versions.map((version) => `- ${version}`),
  ].join('\n');
}

function rustc() {
  try {
    return execFileSync('rustc', ['--version'], { encoding: 'utf8' }).trim();
  } catch {
    return 'no rustc';
  }
}

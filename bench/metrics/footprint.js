/**
 * What the package takes: time to load, memory, disk.
 *
 * @module
 */
import { execFileSync } from 'node:child_process';
import { statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { addonFile } from '../addon.js';
import { Contender, withPair } from '../contender.js';
import { count, kb, mb, median, ms } from '../numbers.js';

const IMPORT = fileURLToPath(new URL('../import-time.js', import.meta.url));
const MB = 2 ** 20;
const SENDS = 10;

/** The import of the package, with its files in memory and with nothing in memory. */
export function load({ size }) {
  const rounds = size(31, 3);
  importOnce();
  const warm = median(Array.from({ length: rounds }, importOnce));
  const rows = [
    {
      what: 'import of the package, warm',
      ours: ms(warm),
      bar: '<= 25 ms',
      met: warm <= 25,
      samples: rounds,
    },
  ];
  const coldRounds = size(5, 0);
  if (coldRounds === 0) return rows;
  const what = 'import of the package, cold';
  if (!dropPageCache()) return [...rows, { what, ours: 'not measured: needs root on Linux' }];
  const cold = median(Array.from({ length: coldRounds }, importCold));
  const row = { what, ours: ms(cold), bar: '<= 60 ms', met: cold <= 60, samples: coldRounds };
  return [...rows, row];
}

function importOnce() {
  return Number(execFileSync(process.execPath, [IMPORT], { encoding: 'utf8' }));
}

function importCold() {
  dropPageCache();
  return importOnce();
}

function dropPageCache() {
  try {
    // Only clean pages can be dropped.
    execFileSync('sync');
    writeFileSync('/proc/sys/vm/drop_caches', '1');
    return true;
  } catch {
    return false;
  }
}

/** Memory of new processes at rest, and the most that ten long answers at once take. */
export async function memory({ server, size }) {
  if (process.platform !== 'linux') {
    return [{ what: 'RSS of the process tree', ours: 'not measured: needs Linux' }];
  }
  const rounds = size(5, 1);
  const rest = { floor: [], kernel: [] };
  const peak = { floor: [], kernel: [] };
  for (let round = 0; round < rounds; round += 1) {
    await withPair(server.replay, async (pair) => {
      for (const name of ['floor', 'kernel']) {
        await pair[name].run('firstChunks', { samples: 3 });
        rest[name].push(pair[name].memory('VmRSS'));
        await pair[name].run('concurrent', { sends: SENDS });
        peak[name].push(pair[name].memory('VmHWM'));
      }
    });
  }
  return [
    memoryRow('RSS of the process tree after three sends', rest, rounds),
    memoryRow(`${SENDS} sends at once: highest RSS of the process tree`, peak, rounds),
  ];
}

function memoryRow(what, bytes, samples) {
  const [floor, ours] = [median(bytes.floor), median(bytes.kernel)];
  const more = ours - floor;
  return {
    what,
    floor: mb(floor),
    ours: mb(ours),
    ratio: `${more < 0 ? '-' : '+'}${mb(Math.abs(more))}`,
    bar: '<= floor + 30 MB',
    met: more <= 30 * MB,
    samples,
  };
}

/** What a session holds between its turns. */
export async function idle({ server, size }) {
  const [rounds, sessions] = [size(3, 1), size(1_000, 100)];
  const grown = [];
  for (let round = 0; round < rounds; round += 1) {
    const kernel = await Contender.start('kernel', server.replay);
    const before = await kernel.run('idle', { sessions: 100 });
    const after = await kernel.run('idle', { sessions });
    await kernel.stop();
    grown.push({
      rss: (after.rss - before.rss) / sessions,
      heap: (after.heap - before.heap) / sessions,
    });
  }
  const what = `an idle session of ${count(sessions)}, one turn each`;
  const [rss, heap] = ['rss', 'heap'].map((key) => median(grown.map((each) => each[key])));
  return [
    { what: `${what}: RSS`, ours: kb(rss), bar: '<= 50 KB', met: rss <= 50_000, samples: rounds },
    { what: `${what}: JavaScript heap of that`, ours: kb(heap), samples: rounds },
  ];
}

/** The addon on disk. */
export function size({ release }) {
  const bytes = statSync(addonFile).size;
  const row = { what: 'addon, stripped', ours: mb(bytes), bar: '<= 24 MB', met: bytes <= 24 * MB };
  return [release ? row : { what: 'addon, not a release build', ours: mb(bytes) }];
}

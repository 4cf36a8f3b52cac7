/**
 * Measures the kernel against the floor and prints one table: `npm run bench`.
 *
 *   node bench/run.js                 everything; also writes bench/RESULTS.md
 *   node bench/run.js --only stream   one part, by its name in README.md
 *   node bench/run.js --quick         a few samples of each: shows that the bench works, no more
 *
 * @module
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { ScriptError, script } from '../scripts/run.js';
import { isRelease } from './addon.js';
import { idle, load, memory, size } from './metrics/footprint.js';
import { abort, refusal, start, warm } from './metrics/latency.js';
import { concurrent, paced, stream, trickle } from './metrics/throughput.js';
import { assertSameRequests } from './fairness.js';
import { Server } from './server.js';
import { circumstances, table } from './table.js';

const METRICS = {
  warm,
  start,
  import: load,
  stream,
  trickle,
  paced,
  concurrent,
  memory,
  idle,
  refusal,
  abort,
  size,
};
const RESULTS = new URL('RESULTS.md', import.meta.url);

const HEAD = `# Results

Written by \`npm run bench\`; README.md says what is measured. Medians of interleaved runs.
`;

function readOptions() {
  const options = { quick: { type: 'boolean', default: false }, only: { type: 'string' } };
  const { quick, only } = parseArgs({ options }).values;
  if (only !== undefined && !Object.hasOwn(METRICS, only)) {
    throw new ScriptError(`--only ${only}: use one of ${Object.keys(METRICS).join(', ')}`);
  }
  return { quick, only };
}

/** A few samples, maybe of a build for development, meet or miss nothing. */
function unjudged({ bar: _bar, met: _met, ...row }) {
  return row;
}

await script(async () => {
  const { quick, only } = readOptions();
  const release = isRelease();
  if (!release && !quick) {
    throw new ScriptError(
      'The addon is not the current release build, so its numbers would say nothing.\n' +
        '`npm run bench` builds and measures it; `node bench/run.js --quick` tries the bench out.',
    );
  }
  const rows = [];
  const where = circumstances();
  const chunks = quick ? 500 : 5_000;
  const server = await Server.start(chunks);
  const bench = { server, chunks, release, size: (full, few) => (quick ? few : full) };
  try {
    await assertSameRequests(server);
    for (const name of only === undefined ? Object.keys(METRICS) : [only]) {
      process.stderr.write(`${name} ...\n`);
      rows.push(...(await METRICS[name](bench)));
      await server.assertNoViolations();
    }
  } finally {
    await server.close();
  }
  const text = `${where}\n\n${table(quick ? rows.map(unjudged) : rows)}\n`;
  process.stdout.write(`${quick ? 'Quick run: the numbers say nothing.\n\n' : ''}${text}`);
  if (!quick && only === undefined) writeFileSync(RESULTS, `${HEAD}\n${text}`);
});

/**
 * Measures the kernel against the floor and its peers: `npm run bench`.
 *
 *   node bench/run.js                 everything; also writes bench/RESULTS.md
 *   node bench/run.js --only stream   one part, by its name in README.md
 *   node bench/run.js --no-peers      everything but the peers, which are installed at first use
 *   node bench/run.js --quick         a few samples of each: shows that the bench works, no more;
 *                                     without peers, --quick --peers with them
 *
 * @module
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { ScriptError, script } from '../scripts/run.js';
import { isRelease } from './addon.js';
import { idle, load, memory, size } from './metrics/footprint.js';
import { abort, refusal, start, warm } from './metrics/latency.js';
import { peers } from './metrics/peers.js';
import { concurrent, paced, stream, trickle } from './metrics/throughput.js';
import { assertSameRequests } from './fairness.js';
import { preparePeers } from './peers/prepare.js';
import { Server } from './server.js';
import { circumstances, ownTable, peerTable } from './table.js';

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
  const options = {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    peers: { type: 'boolean' },
  };
  const { values } = parseArgs({ options, allowNegative: true });
  const { quick, only, peers: withPeers = !quick } = values;
  const names = [...Object.keys(METRICS), peers.name];
  if (only !== undefined && !names.includes(only)) {
    throw new ScriptError(`--only ${only}: use one of ${names.join(', ')}`);
  }
  if (only === peers.name && !withPeers) {
    throw new ScriptError('--only peers: add --peers, or leave out --quick and --no-peers');
  }
  return { quick, only, withPeers: withPeers && [undefined, peers.name].includes(only) };
}

/** A few samples, maybe of a build for development, meet or miss nothing. */
function unjudged({ bar: _bar, met: _met, ...row }) {
  return row;
}

async function measure(names, bench) {
  const rows = [];
  for (const name of names) {
    process.stderr.write(`${name} ...\n`);
    rows.push(...(await METRICS[name](bench)));
    await bench.server.assertNoViolations();
  }
  return rows;
}

await script(async () => {
  const { quick, only, withPeers } = readOptions();
  const release = isRelease();
  if (!release && !quick) {
    throw new ScriptError(
      'The addon is not the current release build, so its numbers would say nothing.\n' +
        '`npm run bench` builds and measures it; `node bench/run.js --quick` tries the bench out.',
    );
  }
  const chunks = quick ? 500 : 5_000;
  const server = await Server.start(chunks);
  try {
    const prepared = withPeers ? await preparePeers(server.replay) : [];
    const where = circumstances(prepared.map((peer) => `${peer.name}: ${peer.title}`));
    const bench = {
      server,
      chunks,
      release,
      peers: prepared,
      size: (full, few) => (quick ? few : full),
    };
    await assertSameRequests(server);
    const own = Object.keys(METRICS).filter((name) => [undefined, name].includes(only));
    const rows = await measure(own, bench);
    const peerRows = withPeers ? await peers(bench) : [];
    const judged = (some) => (quick ? some.map(unjudged) : some);
    const tables = [
      ...(rows.length > 0 ? [ownTable(judged(rows))] : []),
      ...(peerRows.length > 0 ? [peerTable(judged(peerRows))] : []),
    ];
    const text = `${[where, ...tables].join('\n\n')}\n`;
    process.stdout.write(`${quick ? 'Quick run: the numbers say nothing.\n\n' : ''}${text}`);
    if (!quick && only === undefined) writeFileSync(RESULTS, `${HEAD}\n${text}`);
  } finally {
    await server.close();
  }
});

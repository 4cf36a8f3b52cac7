/**
 * The kernel beside other programs that do what it does, at least in part.
 *
 * @module
 */
import { byTurns, withContenders } from '../contender.js';
import { count, mb, median, ms, ratio, us } from '../numbers.js';
import { OLD_ENGINE } from '../peers/prepare.js';
import { PROMPTS } from '../script.js';
import { OLD_ENGINE_FACTOR, startOne } from './latency.js';

/** Sends at once. */
const SENDS = 10;
/** Memory, and the part of it that processes surely do not share. */
const RSS = ['VmRSS', 'RssAnon'];

/**
 * @param {object} bench
 * @returns {Promise<import('../table.js').PeerRow[]>}
 */
export async function peers(bench) {
  const [ready, missing] = [true, false].map((wanted) =>
    bench.peers.filter((peer) => wanted === (peer.missing === undefined)),
  );
  const rows = [];
  if (ready.length > 0) {
    for (const part of [start, warm, stream, concurrent]) {
      process.stderr.write(`peers: ${part.name} ...\n`);
      rows.push(...(await part({ ...bench, peers: ready })));
    }
  }
  const reasons = missing.map((peer) => ({
    what: `not measured: ${peer.missing}`,
    peer: peer.name,
  }));
  return [...rows, ...reasons];
}

/** Start of the process to the first chunk. */
async function start(bench) {
  const gateways = gatewaysOf(bench);
  const plan = { rounds: bench.size(15, 1), warmUps: 1, few: 5 };
  const times = await turns(bench, gateways, plan, (name) => startOne(name, gateways[name]));
  return rowsOf(bench, times, { what: 'process start to first chunk', show: ms });
}

/** `send` to the first chunk, not the first of its process. */
async function warm(bench) {
  const plan = { rounds: bench.size(10, 1), warmUps: bench.size(2, 0), few: 5 };
  const many = bench.size(20, 5);
  const results = await inTurns(bench, plan, (contender, isSlow) =>
    contender.run('firstChunks', { samples: isSlow ? 1 : many }),
  );
  const bar = ({ name }, share) =>
    name === OLD_ENGINE && {
      bar: `<= 1 / ${OLD_ENGINE_FACTOR}`,
      met: share * OLD_ENGINE_FACTOR <= 1,
    };
  const times = valuesOf(results, (some) => some);
  return rowsOf(bench, times, { what: 'send to first chunk, warm', show: ms, bar });
}

/** One long answer. */
async function stream(bench) {
  const plan = { rounds: bench.size(15, 1), warmUps: bench.size(2, 0), few: 5 };
  const results = await inTurns(bench, plan, (contender) =>
    contender.run('stream', { prompt: PROMPTS.stream }),
  );
  expectChunks(results, bench.chunks);
  const what = `${count(bench.chunks)} chunks`;
  const rate = valuesOf(results, ({ chunks, ms }) => (chunks / ms) * 1_000);
  const cpu = valuesOf(results, ({ chunks, cpuUs }) => cpuUs / chunks);
  return [
    ...rowsOf(bench, rate, { what: `${what}: chunks/s`, show: count }),
    ...rowsOf(bench, cpu, { what: `${what}: CPU of a chunk`, show: us }),
  ];
}

/** Long answers at once: time, and the most memory that process and children have together. */
async function concurrent(bench) {
  const plan = { rounds: bench.size(5, 1), warmUps: bench.size(1, 0), few: 3 };
  const results = await inTurns(bench, plan, (contender) =>
    contender.runWatched('concurrent', { sends: SENDS }, RSS),
  );
  expectChunks(results, SENDS * bench.chunks);
  const what = `${SENDS} sends of ${count(bench.chunks)} chunks at once`;
  const times = valuesOf(results, (result) => result.ms);
  const rows = rowsOf(bench, times, { what, show: ms });
  if (process.platform !== 'linux') return rows;
  const [rss, anonymous] = RSS.map((field) => valuesOf(results, ({ most }) => most[field]));
  return [
    ...rows,
    ...rowsOf(bench, rss, { what: `${what}: RSS of the process tree`, show: mb }),
    ...rowsOf(bench, anonymous, { what: `${what}: of that anonymous`, show: mb }),
  ];
}

/** What each contender gets, by the name of its module. */
function gatewaysOf({ server, peers }) {
  const own = { floor: server.replay, kernel: server.replay };
  const theirs = peers.map((peer) => [peer.module, { ...server.replay, peer: peer.prepared }]);
  return { ...own, ...Object.fromEntries(theirs) };
}

function inTurns(bench, plan, work) {
  return withContenders(gatewaysOf(bench), (contenders) =>
    turns(bench, contenders, plan, (name, isSlow) => work(contenders[name], isSlow)),
  );
}

function turns({ peers }, contenders, { rounds, warmUps, few }, work) {
  const isSlow = (name) => peers.some((peer) => peer.module === name && peer.slow);
  const roundsOf = (name) => (isSlow(name) ? Math.min(few, rounds) : rounds);
  return byTurns(Object.keys(contenders), { rounds, warmUps, roundsOf }, (name) =>
    work(name, isSlow(name)),
  );
}

function valuesOf(results, value) {
  const lists = Object.entries(results).map(([name, list]) => [name, list.flatMap(value)]);
  return Object.fromEntries(lists);
}

/** A row for each peer, of medians. */
function rowsOf({ peers }, values, { what, show, bar = () => undefined }) {
  const [floor, ours] = [median(values.floor), median(values.kernel)];
  return peers.map((peer) => {
    const theirs = median(values[peer.module]);
    return {
      what,
      peer: peer.name,
      floor: show(floor),
      ours: show(ours),
      theirs: show(theirs),
      ratio: ratio(ours / theirs),
      byFloor: ratio(theirs / floor),
      ...bar(peer, ours / theirs),
      samples: values[peer.module].length,
    };
  });
}

function expectChunks(results, wanted) {
  for (const [name, list] of Object.entries(results)) {
    const other = list.find(({ chunks }) => chunks !== wanted);
    if (other) throw new Error(`${name}: ${other.chunks} chunks came instead of ${wanted}`);
  }
}

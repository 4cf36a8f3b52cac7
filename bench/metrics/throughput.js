/**
 * How fast long answers get through, and at what cost.
 *
 * @module
 */
import { Contender, interleave, withPair } from '../contender.js';
import { count, median, ms, times, us } from '../numbers.js';
import { PROMPTS } from '../script.js';

/** Sends at once. */
const SENDS = 10;

/** One long answer, written by the server in pieces of 16 KB. */
export function stream(bench) {
  return longAnswer(bench, PROMPTS.stream, '', bench.size(25, 2));
}

/** One long answer, each chunk a packet of its own, as fast as the server can. */
export function trickle(bench) {
  return longAnswer(bench, PROMPTS.trickle, ' in as many packets', bench.size(15, 1));
}

/** An answer at the speed of a fast model: every chunk crosses alone, at once. */
export async function paced({ server, size, chunks }) {
  const [rounds, wanted] = [size(5, 1), chunks / 10];
  const results = await runs(server, PROMPTS.paced, rounds, 1, wanted);
  const what = `${count(wanted)} chunks, one a millisecond`;
  return [cpuRow(what, results, rounds)];
}

async function longAnswer({ server, size, chunks }, prompt, how, rounds) {
  const results = await runs(server, prompt, rounds, size(4, 1), chunks);
  const rate = (name) => of(results[name], (result) => (result.chunks / result.ms) * 1_000);
  const crossings = of(results.kernel, (result) => result.crossings);
  const what = `${count(chunks)} chunks${how}`;
  return [
    {
      what: `${what}: chunks/s`,
      floor: count(rate('floor')),
      ours: count(rate('kernel')),
      ratio: times(rate('kernel') / rate('floor')),
      bar: '>= 0.9 x floor',
      met: rate('kernel') >= 0.9 * rate('floor'),
      samples: rounds,
    },
    cpuRow(what, results, rounds),
    {
      what: `${what}: crossings`,
      ours: count(crossings),
      ratio: `${times(crossings / chunks)} chunks`,
      bar: '<= chunks / 3',
      met: crossings <= chunks / 3,
      samples: rounds,
    },
  ];
}

async function runs(server, prompt, rounds, warmUps, chunks) {
  const results = await withPair(server.replay, (pair) =>
    interleave(pair, rounds, 'stream', { prompt }, warmUps),
  );
  for (const result of [...results.floor, ...results.kernel]) expect(result.chunks, chunks);
  return results;
}

function cpuRow(what, results, samples) {
  const cpu = (name) => of(results[name], (result) => result.cpuUs / result.chunks);
  return {
    what: `${what}: CPU of a chunk`,
    floor: us(cpu('floor')),
    ours: us(cpu('kernel')),
    ratio: times(cpu('kernel') / cpu('floor')),
    bar: '<= 1.5 x floor',
    met: cpu('kernel') <= 1.5 * cpu('floor'),
    samples,
  };
}

function of(results, value) {
  return median(results.map(value));
}

/** Ten long answers at once. */
export async function concurrent({ server, size, chunks }) {
  const rounds = size(15, 1);
  const settings = { sends: SENDS };
  const results = await withPair(server.replay, (pair) =>
    interleave(pair, rounds, 'concurrent', settings, size(2, 0)),
  );
  for (const result of [...results.floor, ...results.kernel]) {
    expect(result.chunks, SENDS * chunks);
  }
  const [floor, ours] = [results.floor, results.kernel].map((each) =>
    of(each, (result) => result.ms),
  );
  const what = `${SENDS} sends of ${count(chunks)} chunks at once`;
  const alone = await serverAlone(server, settings, size(7, 1));
  return [
    {
      what,
      floor: ms(floor),
      ours: ms(ours),
      ratio: times(ours / floor),
      bar: '<= 2 x floor',
      met: ours <= 2 * floor,
      samples: rounds,
    },
    { what: `${what}: the server alone`, floor: ms(alone), samples: size(7, 1) },
  ];
}

/** What the server and the socket take: it must be much less than the floor. */
async function serverAlone({ replay }, settings, rounds) {
  const drain = await Contender.start('drain', replay);
  const results = [];
  for (let round = 0; round < rounds; round += 1) {
    results.push(await drain.run('concurrent', settings));
  }
  await drain.stop();
  return of(results, (result) => result.ms);
}

function expect(actual, wanted) {
  if (actual !== wanted) throw new Error(`${actual} chunks came instead of ${wanted}`);
}

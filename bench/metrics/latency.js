/**
 * How long a user waits for something to happen.
 *
 * @module
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { byTurns, interleave, withPair } from '../contender.js';
import { median, ms, ratio, times } from '../numbers.js';
import { OLD_ENGINE } from '../peers/prepare.js';

const START = fileURLToPath(new URL('../first-chunk.js', import.meta.url));
const run = promisify(execFile);

/** What the engine before this one took from `send` to the first chunk, recorded. */
const OLD_ENGINE_MS = 440;
/** How many times faster than that engine a first chunk must be. */
export const OLD_ENGINE_FACTOR = 25;

/** `send` to the first chunk, over a connection that is open already. */
export async function warm({ server, size, peers }) {
  const [rounds, samples] = [size(20, 2), size(20, 5)];
  const results = await withPair(server.replay, (pair) =>
    interleave(pair, rounds, 'firstChunks', { samples }, size(3, 1)),
  );
  const [floor, ours] = [median(results.floor.flat()), median(results.kernel.flat())];
  const row = {
    what: 'send to first chunk, warm',
    floor: ms(floor),
    ours: ms(ours),
    ratio: times(ours / floor),
    bar: '<= 1.5 x floor',
    met: ours <= 1.5 * floor,
    samples: rounds * samples,
  };
  const measured = peers.some((peer) => peer.name === OLD_ENGINE && !peer.missing);
  return measured ? [row] : [row, recorded(ours, rounds * samples)];
}

/** Where the engine before does not run, the bar is held to what it took elsewhere. */
function recorded(ours, samples) {
  return {
    what: `the same, against the ${OLD_ENGINE_MS} ms recorded of the engine before`,
    ours: ms(ours),
    ratio: ratio(ours / OLD_ENGINE_MS),
    bar: `<= 1 / ${OLD_ENGINE_FACTOR}`,
    met: ours * OLD_ENGINE_FACTOR <= OLD_ENGINE_MS,
    samples,
  };
}

/** Start of the process to the first chunk: Node, imports, the first connection. */
export async function start({ server, size }) {
  const rounds = size(31, 1);
  const results = await byTurns(['floor', 'kernel'], { rounds, warmUps: 1 }, (name) =>
    startOne(name, server.replay),
  );
  const [floor, ours] = [median(results.floor), median(results.kernel)];
  const row = {
    what: 'process start to first chunk',
    floor: ms(floor),
    ours: ms(ours),
    ratio: times(ours / floor),
    bar: '<= floor + 40 ms',
    met: ours <= floor + 40,
    samples: rounds,
  };
  return [row];
}

/**
 * Starts a process that sends once.
 *
 * @returns {Promise<number>} milliseconds to its first chunk
 */
export async function startOne(name, gateway) {
  const begin = Date.now();
  const { stdout } = await run(process.execPath, [START, name, JSON.stringify(gateway)]);
  // Wall clocks of one machine: the child tells when it saw the chunk, its end is not counted.
  return Number(stdout) - begin;
}

/** A wrong key: `send` to the error, and the requests that it takes. */
export async function refusal({ server, size }) {
  const [rounds, samples] = [size(5, 1), size(10, 3)];
  const gateway = { ...server.gateway, apiKey: 'wrong' };
  const { results, requests } = await withPair(gateway, async (pair) => {
    const results = await interleave(pair, rounds, 'refusals', { samples });
    await server.mark();
    await pair.kernel.run('refusals', { samples });
    return { results, requests: (await server.count()) / samples };
  });
  const [floor, ours] = [median(results.floor.flat()), median(results.kernel.flat())];
  return [
    {
      what: '401: send to error',
      floor: ms(floor),
      ours: ms(ours),
      ratio: times(ours / floor),
      bar: '<= 100 ms',
      met: ours <= 100,
      samples: rounds * samples,
    },
    {
      what: '401: requests for one send',
      floor: '1',
      ours: String(requests),
      bar: '1',
      met: requests === 1,
      samples,
    },
  ];
}

/** An abort at the first chunk: until the iterator has ended. */
export async function abort({ server, size }) {
  const [rounds, samples] = [size(5, 1), size(8, 2)];
  await server.mark();
  const results = await withPair(server.gateway, (pair) =>
    interleave(pair, rounds, 'aborts', { samples }),
  );
  const [floor, ours] = [median(results.floor.flat()), median(results.kernel.flat())];
  const requests = (await server.count()) / (2 * rounds * samples);
  const what = 'abort to the end of the iterator';
  return [
    {
      what,
      floor: ms(floor),
      ours: ms(ours),
      ratio: times(ours / floor),
      bar: '<= 50 ms, no request after it',
      met: ours <= 50 && requests === 1,
      samples: rounds * samples,
    },
    {
      what: `${what}, slowest`,
      floor: ms(Math.max(...results.floor.flat())),
      ours: ms(Math.max(...results.kernel.flat())),
      samples: rounds * samples,
    },
  ];
}

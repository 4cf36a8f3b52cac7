/**
 * The contenders must ask for the same.
 *
 * @module
 */
import { deepStrictEqual } from 'node:assert';

import { interleave, withPair } from './contender.js';

/** Headers that name the program or the connection. */
const OWN = ['user-agent', 'accept-language', 'sec-fetch-mode', 'connection', 'host'];

/**
 * Fails when the floor and the kernel send different requests, or use their connections otherwise.
 *
 * @param {import('./server.js').Server} server
 */
export async function assertSameRequests(server) {
  await server.mark();
  await withPair(server.gateway, (pair) => interleave(pair, 1, 'firstChunks', { samples: 1 }));
  const [floor, , kernel] = await server.requests();
  deepStrictEqual(kernel.body, floor.body, 'the contenders send different bodies');
  deepStrictEqual(names(kernel), names(floor), 'the contenders send different headers');
}

function names({ headers }) {
  return Object.keys(headers)
    .filter((name) => !OWN.includes(name))
    .sort();
}

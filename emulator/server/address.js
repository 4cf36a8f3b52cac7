/** Addresses that mean "all" when listening, with the one that a client on this machine connects to. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
]);

/**
 * @param {string} host name that was asked for
 * @param {{ address: string, port: number }} bound what the server got for it
 * @returns {{ url: string, everywhere: boolean }} where clients connect, and whether the server
 *   listens on all addresses
 */
export function reachable(host, { address, port }) {
  // Judged by what was bound, because "all addresses" has many spellings ("0", "::0").
  const name = LOOPBACK.get(address) ?? host;
  return {
    url: `http://${name.includes(':') ? `[${name}]` : name}:${port}`,
    everywhere: LOOPBACK.has(address),
  };
}

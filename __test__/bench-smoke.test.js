/** The benchmarks run to their end, with any build and without the network. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { promisify } from 'node:util';

const BENCH = fileURLToPath(new URL('../bench/run.js', import.meta.url));
const run = promisify(execFile);

/** @returns {Promise<{ code: number, stdout: string, stderr: string }>} */
function bench(...args) {
  return run(process.execPath, [BENCH, ...args]).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
  );
}

test('bench/run.js --quick prints the table, without peers', async () => {
  const { code, stdout, stderr } = await bench('--quick');
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\| What +\| Floor +\| Ours +\| Ratio +\|/m);
  const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
  for (const what of [
    'send to first chunk, warm',
    'process start to first chunk',
    '500 chunks: chunks/s',
    '10 sends of 500 chunks at once',
    '401: send to error',
    'abort to the end of the iterator',
  ]) {
    const row = rows.find((line) => line.startsWith(`| ${what} `));
    assert.match(row ?? '', /\| [\d.,]+ ?(ms)? +\| [\d.,]+ ?(ms)? +\| \d+\.\d\d x/, what);
  }
  assert.doesNotMatch(stdout, /NaN|undefined|Peer/);
  assert.doesNotMatch(stderr, /Installing|peers/);
});

test('bench/run.js refuses a part that does not exist, and peers in a quick run', async () => {
  const unknown = await bench('--quick', '--only', 'nothing');
  assert.equal(unknown.code, 1);
  assert.match(unknown.stderr, /^--only nothing: use one of warm, start, /);
  const peers = await bench('--quick', '--only', 'peers');
  assert.equal(peers.code, 1);
  assert.match(peers.stderr, /^--only peers: add --peers/);
});

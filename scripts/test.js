/**
 * The one test command. Runs every step, also after one that failed, and ends with a line for each.
 *
 *   OAK_TEST_ONLY=rust|js|types   runs one part
 *   OAK_TEST_NODES=22,24          majors of Node that the JavaScript tests run on besides this one
 *
 * @module
 */
import { readdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';

import { build } from './build.js';
import { cargoEnv, devFeatures, hasNextest, requireCargo } from './cargo.js';
import { oracleBin } from './oracle.js';
import { ScriptError, root, script, tee } from './run.js';

const TEST_TIMEOUT_MS = 300_000;
const SKIP_COUNTS = [
  /^ℹ skipped (\d+)$/gm, // node --test
  /^\s*Summary .*?(\d+) skipped$/gm, // cargo nextest
  /^test result: .*?(\d+) ignored/gm, // cargo test
];

/**
 * Tests of processes, networks and databases that no version of Node.js changes: only the running one
 * has them.
 */
const ONCE =
  /^(bench-|cancel-pressure|client-tools-(crash|processes)|crash-|mcp-(conformance|ends|http|stdio)|session-(contention|lease))/;
/** Databases of the tests that run on each: one is enough for a further version. */
const ONE_DATABASE = { OAK_TEST_DATABASES: 'sqlite' };

const PARTS = {
  rust: () => [{ name: 'Rust', work: testRust }],
  js: () => [
    { name: 'build', work: buildAddon },
    ...nodes().map(({ name, path }, at) => ({ name, work: () => testNode(path(), at > 0) })),
  ],
  types: () => [
    { name: 'type-check', work: () => tee(oracleBin('tooling', 'tsc'), ['--noEmit']) },
    { name: 'index.d.ts', work: () => tee(process.execPath, ['scripts/types.js', '--check']) },
  ],
};

/** Steps of the chosen parts; the addon first, so that what does not compile shows at once. */
function steps(only) {
  if (!only) return ['js', 'rust', 'types'].flatMap((part) => PARTS[part]());
  if (Object.hasOwn(PARTS, only)) return PARTS[only]();
  throw new ScriptError(`OAK_TEST_ONLY=${only}: use one of ${Object.keys(PARTS).join(', ')}`);
}

function nodes() {
  const own = process.versions.node.split('.')[0];
  const others = (process.env.OAK_TEST_NODES ?? '22').split(',').filter(Boolean);
  return [
    { name: `Node ${own}`, path: () => process.execPath },
    ...others
      .filter((major) => major !== own)
      .map((major) => ({ name: `Node ${major}`, path: () => oracleBin(`node${major}`, 'node') })),
  ];
}

async function buildAddon() {
  await build();
  return { code: 0, output: '' };
}

function testRust() {
  requireCargo();
  const args = hasNextest() ? ['nextest', 'run', '--no-fail-fast'] : ['test', '--no-fail-fast'];
  return tee('cargo', [...args, ...devFeatures], { env: cargoEnv });
}

function testNode(node, isFurther) {
  const args = [
    '--test',
    '--test-reporter=spec',
    // Many tests wait for time to pass.
    `--test-concurrency=${availableParallelism() + 1}`,
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    ...testFiles().filter((name) => !isFurther || !ONCE.test(basename(name))),
  ];
  return tee(node, args, isFurther ? { env: { ...process.env, ...ONE_DATABASE } } : {});
}

// Node 20 does not expand patterns.
function testFiles() {
  return readdirSync(join(root, '__test__'), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .sort()
    .map((name) => join('__test__', name));
}

async function attempt({ name, work }) {
  process.stdout.write(`\n> ${name}\n`);
  const start = performance.now();
  const { code, output } = await Promise.resolve().then(work).catch(explain);
  return { name, ok: code === 0, skipped: countSkips(output), ms: performance.now() - start };
}

function explain(error) {
  const text = error instanceof ScriptError ? error.message : error.stack;
  process.stderr.write(`${text}\n`);
  return { code: 1, output: '' };
}

function countSkips(output) {
  const text = stripVTControlCharacters(output);
  return SKIP_COUNTS.flatMap((pattern) => [...text.matchAll(pattern)]).reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

function summaryLine({ name, ok, skipped, ms }) {
  const skips = skipped ? `, ${skipped} skipped` : '';
  return `${ok ? 'ok    ' : 'FAILED'} ${name} (${(ms / 1000).toFixed(1)} s${skips})\n`;
}

await script(async () => {
  const results = [];
  for (const step of steps(process.env.OAK_TEST_ONLY)) results.push(await attempt(step));
  const skipped = results.reduce((sum, result) => sum + result.skipped, 0);
  process.stdout.write(`\n${results.map(summaryLine).join('')}skipped: ${skipped}\n`);
  return results.every(({ ok }) => ok) ? 0 : 1;
});

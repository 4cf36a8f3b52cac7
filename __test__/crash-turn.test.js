/** Turns whose process is killed, on every database; see `crash/`. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { DATABASES } from '../crash/databases.js';
import { ANSWERS, allPoints, pointsOf } from '../crash/points.js';
import { hasPostgres } from '../crash/postgres.js';
import { devFeatures } from '../scripts/cargo.js';
import { root } from '../scripts/run.js';

const KILLS = 20;
const FREE = { file: true, sqlite: true, pgsql: hasPostgres() };
const REQUIRED = (process.env.OAK_TEST_REQUIRE ?? '').split(',').includes('postgres');

const run = promisify(execFile);

for (const driver of Object.keys(DATABASES)) {
  const skip = !FREE[driver] && !REQUIRED && 'no PostgreSQL server on this machine';
  test(
    `${driver}: nothing is lost or done twice when the process is killed`,
    { skip },
    async () => {
      const args = ['--scenario', 'turn', '--driver', driver, '--kills', String(KILLS)];
      const { stdout } = await run(process.execPath, ['scripts/crash.js', '--no-build', ...args], {
        cwd: root,
      }).catch((error) => error);
      const lines = stdout.trim().split('\n');
      const last = lines.at(-1);
      const counts = /^kills=(\d+) lost=0 repeated=0 invalid=0 mixed=0 unknown=\d+$/.exec(last);
      assert.ok(counts && Number(counts[1]) >= KILLS, stdout);
      assert.equal(lines.at(-2), 'points never hit: none', stdout);
    },
  );
}

test('every crash point belongs to a scenario and a database', () => {
  const points = allPoints();
  assert.ok(points.includes('turn.tool.started'));
  const reached = Object.keys(DATABASES).flatMap((driver) => pointsOf('turn', driver));
  const elsewhere = points.filter((name) => name.startsWith(`${ANSWERS}.`));
  assert.deepEqual([...new Set([...reached, ...elsewhere])].sort(), points);
  assert.ok(!pointsOf('turn', 'sqlite').some((name) => name.startsWith('file.')));
});

test('a release has no crash points', () => {
  const manifest = readFileSync(`${root}/Cargo.toml`, 'utf8');
  const [, defaults] = /^default = \[(.*)\]$/m.exec(manifest);
  assert.doesNotMatch(defaults, /crash-points/);
  assert.match(manifest, /^crash-points = \[\]$/m);
  const dependents = manifest.match(/^.*"(?:[^"]*\/)?crash-points".*$/gm);
  assert.equal(dependents, null, 'no other feature switches it on');
  assert.deepEqual(devFeatures, ['--features', 'crash-points']);
  const script = readFileSync(`${root}/scripts/build.js`, 'utf8');
  assert.match(script, /release \? \['--release'\] : devFeatures/);
});

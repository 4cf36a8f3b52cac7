/** The examples of stored conversations; what they must print they assert themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { USES_CLOUDBASE, runExample } from './support/examples.js';
import { temporaryFolder } from './support/sessions.js';

const options = { skip: USES_CLOUDBASE };

test('example 03 remembers in the memory of its process', options, async () => {
  const { stdout } = await runExample('03-multi-turn.ts');
  assert.match(stdout, /agent {2}你叫小明。你喜欢吃番茄炒蛋。/);
  assert.match(stdout, /project keys: emulator-env; entries: 4/);
});

test('example 04 remembers in another process', options, async (t) => {
  const { stdout } = await runExample('04-multi-turn-db.ts', { TMPDIR: temporaryFolder(t) });
  const [, first, id] = /process (\d+) starts ([\w-]{36})/.exec(stdout);
  const [, second] = new RegExp(`process (\\d+) goes on with ${id} of xiaoming`).exec(stdout);
  assert.notEqual(first, second);
  assert.match(stdout, /agent {2}你叫小明。你喜欢吃番茄炒蛋。/);
});

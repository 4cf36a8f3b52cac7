/** The examples of tools of all origins; what they must print they assert themselves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { oracleBin } from '../scripts/oracle.js';
import { USES_CLOUDBASE, runExample } from './support/examples.js';

const options = { skip: USES_CLOUDBASE };

test('example 06 calculates with tools of a server in its process', options, async () => {
  const { stdout } = await runExample('06-mcp-sdk-server.ts');
  assert.match(stdout, /mcp__calculator__multiply gave .*1081/);
  assert.match(stdout, /mcp__calculator__add gave .*1181/);
  assert.match(stdout, /agent {2}.*1181/);
});

test('example 07 calls tools of a server in another process', options, async () => {
  const EVERYTHING_SERVER = oracleBin('mcp-servers', 'mcp-server-everything');
  const { stdout } = await runExample('07-mcp-stdio.ts', { EVERYTHING_SERVER });
  assert.match(stdout, /mcp__everything__get-sum gave .*42/);
  assert.match(stdout, /mcp__everything__echo gave .*hello mcp/);
});

test('example 15b reads what the older kernel wrote', async () => {
  const { stdout } = await runExample('15b-client-tool-history.ts');
  assert.match(stdout, /^8\/8 checks$/m);
});

test('example 16b pauses for a tool of the client and goes on', options, async () => {
  const { stdout } = await runExample('16b-client-tool-history-live.ts');
  assert.match(stdout, /^7\/7 checks$/m);
  assert.match(stdout, /agent {2}.*Beijing/);
});

test('example 17b shows what the store keeps and what the history shows', options, async () => {
  const { stdout } = await runExample('17b-session-store-debug.ts');
  assert.match(stdout, /^entries in the store: +\d+$/m);
  assert.match(stdout, /^records in the history: +2$/m);
  assert.match(stdout, /^sentinels in the store: +[01]$/m);
});

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { oracleBin } from '../scripts/oracle.js';

const SUITE = oracleBin('mcp-conformance', 'conformance');
const CLIENT = fileURLToPath(new URL('support/mcp-conformance-client.js', import.meta.url));
/** The suite needs a newer Node.js than the kernel; the client runs on this one. */
const NODE =
  Number(process.versions.node.split('.')[0]) >= 22
    ? process.execPath
    : oracleBin('node22', 'node');

const NO_OAUTH = 'there is no signing in by OAuth: an access token is given in headers';
const NO_ELICITATION = 'elicitation is not offered, and refused with -32601';

/** Every scenario for clients: passed, or why it does not apply. */
const SCENARIOS = {
  initialize: 'passes',
  tools_call: 'passes',
  'sse-retry': 'passes',
  'elicitation-sep1034-client-defaults': NO_ELICITATION,
  'auth/metadata-default': NO_OAUTH,
  'auth/metadata-var1': NO_OAUTH,
  'auth/metadata-var2': NO_OAUTH,
  'auth/metadata-var3': NO_OAUTH,
  'auth/basic-cimd': NO_OAUTH,
  'auth/scope-from-www-authenticate': NO_OAUTH,
  'auth/scope-from-scopes-supported': NO_OAUTH,
  'auth/scope-omitted-when-undefined': NO_OAUTH,
  'auth/scope-step-up': NO_OAUTH,
  'auth/scope-retry-limit': NO_OAUTH,
  'auth/token-endpoint-auth-basic': NO_OAUTH,
  'auth/token-endpoint-auth-post': NO_OAUTH,
  'auth/token-endpoint-auth-none': NO_OAUTH,
  'auth/pre-registration': NO_OAUTH,
  'auth/2025-03-26-oauth-metadata-backcompat': NO_OAUTH,
  'auth/2025-03-26-oauth-endpoint-fallback': NO_OAUTH,
  'auth/resource-mismatch': NO_OAUTH,
  'auth/offline-access-scope': NO_OAUTH,
  'auth/offline-access-not-supported': NO_OAUTH,
  'auth/client-credentials-jwt': NO_OAUTH,
  'auth/client-credentials-basic': NO_OAUTH,
  'auth/cross-app-access-complete-flow': NO_OAUTH,
};

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'oak-conformance-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the suite; gives what it printed. */
async function suite(...args) {
  const { stdout, stderr } = await run(NODE, [SUITE, ...args], { cwd: folder });
  return `${stdout}${stderr}`;
}

test('conformance: every scenario for clients is known', async () => {
  const listed = await suite('list', '--client');
  const names = [...listed.matchAll(/^ +- (\S+)/gm)].map(([, name]) => name);
  assert.deepEqual(names.sort(), Object.keys(SCENARIOS).sort());
});

for (const [name, outcome] of Object.entries(SCENARIOS)) {
  if (outcome !== 'passes') continue;
  test(`conformance: ${name} passes`, async () => {
    const command = `${process.execPath} ${CLIENT}`;
    const printed = await suite('client', '--command', command, '--scenario', name);
    assert.match(printed, /Passed: (\d+)\/\1, 0 failed, 0 warnings/);
  });
}

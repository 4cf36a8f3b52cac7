/**
 * Helpers of the tests of stored sessions.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { startEmulator } from '../../emulator/index.js';
import { createAgent } from '../../index.js';
import { configFor } from './boundary.js';
import { database } from './postgres.js';

/** A folder that is deleted after the test. */
export function temporaryFolder(t) {
  const folder = mkdtempSync(join(tmpdir(), 'oak-test-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/**
 * Databases that keep sessions when all agents are gone, by name: `config.session` for one in a folder;
 * nothing where the machine has no server.
 */
export const DURABLE = {
  sqlite: (folder) => ({ database: 'sqlite', path: join(folder, 'sessions.db') }),
  file: (folder) => ({ database: 'file', path: join(folder, 'sessions') }),
  pgsql: async () => {
    const url = await database();
    return url && { database: 'pgsql', url };
  },
};

/** Names of the databases that are tested: all, unless the variable names some. */
const TESTED = process.env.OAK_TEST_DATABASES?.split(',') ?? Object.keys(DURABLE);

/** One test for each durable database, which gets its `config.session`. */
export function stored(name, work) {
  for (const kind of TESTED) {
    const settings = DURABLE[kind];
    test(`${kind}: ${name}`, async (t) => {
      const session = await settings(temporaryFolder(t));
      if (!session) return t.skip('no PostgreSQL server on this machine');
      await work(t, session);
    });
  }
}

/**
 * An emulator and a way to make agents that share a database; everything is closed after the test,
 * which fails if the gateway saw an invalid request.
 *
 * @param {import('node:test').TestContext} t
 * @param {object} session `config.session`
 * @param {object} [options] `rules`, `knobs` of the emulator; the rest is configuration
 */
export async function storedAgents(
  t,
  session,
  { rules = [{ reply: 'Hello.' }], knobs, ...config } = {},
) {
  const emulator = await startEmulator({ rules, knobs });
  t.after(async () => {
    await emulator.close();
    assert.deepEqual(emulator.violations, []);
  });
  const newAgent = (more) => {
    const agent = createAgent({ ...configFor(emulator), session, ...config, ...more });
    t.after(() => agent.close().catch(() => {}));
    return agent;
  };
  return { emulator, newAgent };
}

/** Texts of the messages of a request, with their roles. */
export function conversationIn(request) {
  return request.body.messages.map(({ role, content }) => {
    const blocks = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
    return `${role}: ${blocks.map((block) => block.text ?? block.type).join(' ')}`;
  });
}

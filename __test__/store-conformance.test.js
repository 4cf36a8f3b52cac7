/** The contract of session stores, asked of every store that the package has. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import {
  CloudBaseSessionStore,
  InMemoryDriver,
  NotImplementedError,
  openSessionStore,
} from '../index.js';
import { conformance } from './support/conformance.js';
import { database } from './support/postgres.js';

/** Opens a store; nothing when this build has no driver for it. */
function opened(settings) {
  try {
    return openSessionStore(settings);
  } catch (error) {
    if (error instanceof NotImplementedError) return undefined;
    throw error;
  }
}

async function folder(t) {
  const path = await mkdtemp(join(tmpdir(), 'oak-store-'));
  t.after(() => rm(path, { recursive: true, force: true }));
  return path;
}

conformance('memory', () => openSessionStore({ database: 'memory' }));
conformance('file', async (t) => opened({ database: 'file', path: await folder(t) }));
conformance('sqlite', async (t) =>
  opened({ database: 'sqlite', path: join(await folder(t), 'sessions.db') }),
);
conformance('pgsql', async (t) => {
  if (!opened({ database: 'pgsql', url: 'postgres://localhost/none' })) return undefined;
  const url = await database(t);
  return url && opened({ database: 'pgsql', url });
});
conformance('CloudBaseSessionStore', () => {
  return new CloudBaseSessionStore({ driver: new InMemoryDriver() });
});

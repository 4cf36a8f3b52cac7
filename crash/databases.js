/**
 * The databases that conversations are kept in while their processes are killed.
 *
 * @module
 */
import { join } from 'node:path';

import { startPostgres } from './postgres.js';

/**
 * By name: opens the database in a folder and gives `config.session` of the agents, and how to close
 * it.
 *
 * @type {Record<string, (folder: string) => Promise<{ session: object, close(): Promise<void> }>>}
 */
export const DATABASES = {
  file: async (folder) => embedded({ database: 'file', path: join(folder, 'sessions') }),
  sqlite: async (folder) => embedded({ database: 'sqlite', path: join(folder, 'sessions.db') }),
  pgsql: async () => {
    const server = await startPostgres();
    return { session: { database: 'pgsql', url: server.url }, close: server.close };
  },
};

function embedded(session) {
  return { session, close: async () => {} };
}

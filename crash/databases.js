/**
 * The databases that conversations are kept in while their processes are killed.
 *
 * @module
 */
import { join } from 'node:path';

import { startPostgres } from './postgres.js';

/**
 * By name: opens the database in a folder and gives each `config.session` that conversations are run
 * with, by turns, and how to close it.
 *
 * @type {Record<string, (folder: string) => Promise<{ sessions: object[], close(): Promise<void> }>>}
 */
export const DATABASES = {
  file: async (folder) => embedded({ database: 'file', path: join(folder, 'sessions') }),
  sqlite: async (folder) => embedded({ database: 'sqlite', path: join(folder, 'sessions.db') }),
  pgsql: async () => {
    const server = await startPostgres();
    return { sessions: [{ database: 'pgsql', url: server.url }], close: server.close };
  },
};

function embedded(session) {
  const sessions = ['process', 'fsync'].map((durability) => ({ ...session, durability }));
  return { sessions, close: async () => {} };
}

/**
 * A PostgreSQL server for the tests of a file, where the machine has one.
 *
 * @module
 */
import { after } from 'node:test';

import { hasPostgres, startPostgres } from '../../crash/postgres.js';

/** Whether a missing server is a failure. */
const REQUIRED = (process.env.OAK_TEST_REQUIRE ?? '').split(',').includes('postgres');

let server;
let databases = 0;

// Here, not where it is started: there the hook would belong to the test that asked first.
after(async () => (await server)?.close());

/**
 * @returns {Promise<string | undefined>} address of a fresh database; nothing without a server program
 */
export async function database() {
  if (!hasPostgres() && !REQUIRED) return undefined;
  server ??= startPostgres();
  return (await server).create(`test_${++databases}`);
}

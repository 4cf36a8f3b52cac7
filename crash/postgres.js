/**
 * A PostgreSQL server for the time of the kills, and for tests.
 *
 * @module
 */
import { execFile, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { ScriptError } from '../scripts/run.js';

const run = promisify(execFile);

/** The server refuses to run as root: it then runs as nobody. */
const NOBODY = 65_534;
const USER = 'tester';
const PACKAGES = '/usr/lib/postgresql';
const TRIES = 100;
const TRY_EVERY_MS = 100;

/** @returns {boolean} whether this machine has the programs */
export function hasPostgres() {
  return programFolder() !== undefined;
}

/**
 * Starts a server on a temporary folder and a free port.
 *
 * @returns {Promise<{ url: string, create(name: string): Promise<string>, close(): Promise<void> }>}
 *   address of a database, and how to make another one
 * @throws {ScriptError} without the programs
 */
export async function startPostgres() {
  const programs = programFolder();
  if (!programs) throw new ScriptError('PostgreSQL is needed: its programs initdb and postgres');
  const folder = mkdtempSync(join(tmpdir(), 'oak-pg-'));
  const who = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (who.uid) chownSync(folder, NOBODY, NOBODY);
  const options = { cwd: folder, ...who };
  const data = join(folder, 'data');
  const initial = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  await run(join(programs, 'initdb'), initial, options);
  const port = await freePort();
  // No fsync: the machine stays up, only clients are killed.
  const settings = ['-D', data, '-p', port, '-k', folder, '-h', '127.0.0.1', '-F'];
  const server = spawn(join(programs, 'postgres'), settings, { ...options, stdio: 'ignore' });
  const close = () => stop(server, folder);
  const tool = (name, args) =>
    run(join(programs, name), ['-h', '127.0.0.1', '-p', port, '-U', USER, ...args], options);
  const urlOf = (name) => `postgres://${USER}@127.0.0.1:${port}/${name}`;
  const create = async (name) => {
    await tool('createdb', [name]);
    return urlOf(name);
  };
  try {
    await answering(() => tool('pg_isready', ['-q']));
  } catch (error) {
    await close();
    throw error;
  }
  return { url: urlOf('postgres'), create, close };
}

async function answering(ask) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await ask();
    } catch {
      if (tries === TRIES) throw new ScriptError('the PostgreSQL server did not start');
      await new Promise((resolve) => setTimeout(resolve, TRY_EVERY_MS));
    }
  }
}

async function stop(server, folder) {
  const exited = new Promise((resolve) => server.once('exit', resolve));
  const isRunning = server.exitCode === null && server.signalCode === null;
  // Fast shutdown: connections that are left are closed.
  if (isRunning && server.kill('SIGINT')) await exited;
  rmSync(folder, { recursive: true, force: true });
}

/** The folder of the real programs: a link in the search path does not lie beside the other tools. */
function programFolder() {
  const inPath = (process.env.PATH ?? '').split(delimiter);
  const packaged = existsSync(PACKAGES)
    ? readdirSync(PACKAGES).map((version) => join(PACKAGES, version, 'bin'))
    : [];
  const found = [...inPath, ...packaged].find((folder) => existsSync(join(folder, 'postgres')));
  return found === undefined ? undefined : dirname(realpathSync(join(found, 'postgres')));
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return String(port);
}

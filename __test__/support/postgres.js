/**
 * A PostgreSQL server for the tests of a file, where the machine has one.
 *
 * @module
 */
import { execFile, spawn } from 'node:child_process';
import { chown, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { after } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The server refuses to run as root: it then runs as nobody. */
const NOBODY = 65_534;
const USER = 'tester';
const STARTS = 100;
const START_MS = 100;
/** Whether a missing server is a failure. */
const REQUIRED = (process.env.OAK_TEST_REQUIRE ?? '').split(',').includes('postgres');

let server;
let databases = 0;

// Here, not where it is started: there the hook would belong to the test that asked first.
after(async () => (await server)?.stop());

/**
 * @returns {Promise<string | undefined>} address of a fresh database; nothing without a server program
 */
export async function database() {
  server ??= start();
  const running = await server;
  if (!running && REQUIRED) throw new Error('OAK_TEST_REQUIRE: there is no PostgreSQL server');
  if (!running) return undefined;
  const name = `test_${++databases}`;
  await running.create(name);
  return `postgres://${USER}@127.0.0.1:${running.port}/${name}`;
}

async function start() {
  const programs = await programFolder();
  if (!programs) return undefined;
  const folder = await mkdtemp(join(tmpdir(), 'oak-pg-'));
  const asUser = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};
  if (asUser.uid) await chown(folder, NOBODY, NOBODY);
  const options = { cwd: folder, ...asUser };
  const data = join(folder, 'data');
  const initial = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  await run(join(programs, 'initdb'), initial, options);
  const port = await freePort();
  const settings = ['-D', data, '-p', port, '-k', folder, '-h', '127.0.0.1', '-F'];
  const child = spawn(join(programs, 'postgres'), settings, { ...options, stdio: 'ignore' });
  const tool = (name, args) =>
    run(join(programs, name), ['-h', '127.0.0.1', '-p', port, '-U', USER, ...args], options);
  for (let tries = 0; tries < STARTS; tries += 1) {
    const isReady = await tool('pg_isready', ['-q']).then(
      () => true,
      () => false,
    );
    if (isReady) {
      return {
        port,
        create: (name) => tool('createdb', [name]),
        stop: () => stop(child, folder),
      };
    }
    await new Promise((resolve) => setTimeout(resolve, START_MS));
  }
  await stop(child, folder);
  throw new Error('the PostgreSQL server did not start');
}

async function stop(child, folder) {
  const exited = new Promise((resolve) => child.once('exit', resolve));
  // Fast shutdown: connections that are left are closed.
  if (child.exitCode === null && child.kill('SIGINT')) await exited;
  await rm(folder, { recursive: true, force: true });
}

/** The folder of the real programs: links in the search path do not lie beside their tools. */
async function programFolder() {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const program = await realpath(join(folder, 'postgres')).catch(() => undefined);
    if (program) return dirname(program);
  }
  return undefined;
}

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => probe.once('listening', resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return String(port);
}

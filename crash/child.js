/**
 * Starts a subject and kills it.
 *
 * @module
 */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const SUBJECT = fileURLToPath(new URL('subject.js', import.meta.url));
/** A subject that takes longer hangs. */
const PATIENCE_MS = 60_000;

/**
 * What is known of a subject that is gone.
 *
 * @typedef {object} Ending
 * @property {number} pid
 * @property {boolean} killed whether it died by SIGKILL of the plan
 * @property {number | null} code its exit code
 * @property {boolean} hung whether it had to be killed because it did not end
 * @property {object[]} events what it told, in order
 * @property {number} ms from its start to its end
 * @property {number} readyMs from its start to its first word
 * @property {string} stderr
 */

/**
 * Runs a subject to its end.
 *
 * @param {object} input what the subject reads
 * @param {object} [plan] `point` and `pass` at which it kills itself; or `afterMs`: killed from outside
 *   so long after its start; `log`: file for the passes
 * @returns {Promise<Ending>}
 */
export async function runSubject(input, { point, pass, afterMs, log } = {}) {
  const env = { ...process.env };
  delete env.OAK_CRASH;
  delete env.OAK_CRASH_LOG;
  if (point !== undefined) env.OAK_CRASH = `${point}:${pass}`;
  if (log !== undefined) env.OAK_CRASH_LOG = log;
  const stdio = ['ignore', 'pipe', 'pipe'];
  const child = spawn(process.execPath, [SUBJECT, JSON.stringify(input)], { env, stdio });
  const events = [];
  const begin = performance.now();
  const time = () => performance.now() - begin;
  let [readyMs, stderr, hung] = [Infinity, '', false];
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    if (events.length === 0) readyMs = time();
    events.push(JSON.parse(line));
  });
  child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const kill = () => child.kill('SIGKILL');
  const timer = afterMs === undefined ? undefined : setTimeout(kill, afterMs);
  const alarm = setTimeout(() => (hung = kill()), PATIENCE_MS);
  const read = new Promise((resolve) => lines.once('close', resolve));
  const [code, signal] = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (...how) => resolve(how));
  });
  await read;
  clearTimeout(timer);
  clearTimeout(alarm);
  const killed = signal === 'SIGKILL' && !hung;
  return { pid: child.pid, killed, code, hung, events, ms: time(), readyMs, stderr };
}

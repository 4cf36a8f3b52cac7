/**
 * Starts processes that have a session, for the tests of leases.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('owner-process.js', import.meta.url));

/**
 * Starts a process that runs a turn; it is gone after the test.
 *
 * @param {import('node:test').TestContext} t
 * @param {{ config: object, conversationId: string, prompt: string }} input
 */
export function startOwner(t, input) {
  const stdio = ['pipe', 'pipe', 'inherit'];
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(input)], { stdio });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  t.after(async () => {
    // Also when it is stopped.
    child.kill('SIGKILL');
    await exited;
  });
  const events = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  async function next() {
    const { value, done } = await events.next();
    assert.ok(!done, 'the process ended too early');
    return JSON.parse(value);
  }
  return {
    /** The next thing that it tells, which must be this. */
    async told(event) {
      const found = await next();
      assert.equal(found.event, event, JSON.stringify(found));
      return found;
    },
    /** The next things that it tells, which must be these, in whatever order they come. */
    async toldAll(...names) {
      const found = new Map();
      while (found.size < names.length) {
        const event = await next();
        found.set(event.event, event);
      }
      assert.deepEqual([...found.keys()].sort(), [...names].sort());
      return names.map((name) => found.get(name));
    },
    say: (word) => child.stdin.write(`${word}\n`),
    signal: (name) => assert.ok(child.kill(name)),
    exited,
  };
}

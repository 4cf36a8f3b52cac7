/**
 * Contenders, each in its own process, and their interleaved runs.
 *
 * @module
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));

/** A running contender. */
export class Contender {
  #child;

  /**
   * @param {'floor' | 'kernel' | 'drain'} name
   * @param {{ gatewayUrl: string, apiKey: string }} gateway
   * @returns {Promise<Contender>}
   */
  static async start(name, gateway) {
    const contender = new Contender();
    contender.#child = fork(WORKER, [name, JSON.stringify(gateway)], { execArgv: ['--expose-gc'] });
    await contender.#reply();
    return contender;
  }

  /** Has a function of `tasks.js` run in the process. */
  async run(task, settings = {}) {
    this.#child.send({ task, settings });
    return this.#reply();
  }

  /** Memory of the process and its children in bytes: `VmRSS` now, `VmHWM` at the highest. */
  memory(field) {
    return treeMemory(this.#child.pid, field);
  }

  async stop() {
    const exited = once(this.#child, 'exit');
    this.#child.disconnect();
    await exited;
  }

  async #reply() {
    const end = new AbortController();
    const { signal } = end;
    try {
      const exit = once(this.#child, 'exit', { signal }).then(([code]) => {
        throw new Error(`a contender ended with code ${code}`);
      });
      const [{ value, error }] = await Promise.race([
        once(this.#child, 'message', { signal }),
        exit,
      ]);
      if (error) throw new Error(error);
      return value;
    } finally {
      end.abort();
    }
  }
}

/**
 * Runs a task in both contenders by turns; who begins alternates.
 *
 * @param {{ floor: Contender, kernel: Contender }} pair
 * @param {number} rounds
 * @param {string} task
 * @param {object} [settings]
 * @param {number} [warmUps] rounds that do not count
 * @returns {Promise<{ floor: any[], kernel: any[] }>}
 */
export async function interleave(pair, rounds, task, settings, warmUps = 0) {
  const results = { floor: [], kernel: [] };
  for (let round = -warmUps; round < rounds; round += 1) {
    const order = round % 2 === 0 ? ['floor', 'kernel'] : ['kernel', 'floor'];
    for (const name of order) {
      const value = await pair[name].run(task, settings);
      if (round >= 0) results[name].push(value);
    }
  }
  return results;
}

/**
 * Starts both contenders for the time of some work.
 *
 * @param {{ gatewayUrl: string, apiKey: string }} gateway
 * @param {(pair: { floor: Contender, kernel: Contender }) => Promise<T>} work
 * @returns {Promise<T>}
 * @template T
 */
export async function withPair(gateway, work) {
  const [floor, kernel] = [
    await Contender.start('floor', gateway),
    await Contender.start('kernel', gateway),
  ];
  try {
    return await work({ floor, kernel });
  } finally {
    await Promise.all([floor.stop(), kernel.stop()]);
  }
}

function treeMemory(pid, field) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const own = Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(status)[1]) * 1024;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  return children.filter(Boolean).reduce((sum, child) => sum + treeMemory(child, field), own);
}

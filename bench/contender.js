/**
 * Contenders, each in its own process, and their interleaved runs.
 *
 * @module
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { treeMemory } from './process-tree.js';

const WORKER = fileURLToPath(new URL('worker.js', import.meta.url));
/** Between two looks at the memory of a contender at work. */
const LOOK_MS = 25;

/** A running contender. */
export class Contender {
  #child;

  /**
   * @param {string} name of its module: `floor`, `kernel`, `drain` or `peers/...`
   * @param {{ gatewayUrl: string, apiKey: string, peer?: import('./peers/prepare.js').Prepared }} gateway
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
    return treeMemory(this.#child.pid, [field])[field];
  }

  /**
   * The same, and the most memory seen meanwhile: also of children that end with the task.
   *
   * @param {string[]} fields of `/proc/<pid>/status`
   */
  async runWatched(task, settings, fields) {
    const most = Object.fromEntries(fields.map((field) => [field, 0]));
    const look = () => {
      const now = treeMemory(this.#child.pid, fields);
      for (const field of fields) most[field] = Math.max(most[field], now[field]);
    };
    const watch = setInterval(look, LOOK_MS);
    try {
      return { ...(await this.run(task, settings)), most };
    } finally {
      clearInterval(watch);
    }
  }

  async stop() {
    if (!this.#child.connected) return;
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
 * Lets each do its work by turns; who begins changes from round to round.
 *
 * @param {string[]} names
 * @param {object} plan
 * @param {number} plan.rounds
 * @param {number} [plan.warmUps] rounds that do not count
 * @param {(name: string) => number} [plan.roundsOf] fewer for some; they are spread evenly
 * @param {(name: string) => Promise<T>} work
 * @returns {Promise<Record<string, T[]>>}
 * @template T
 */
export async function byTurns(names, { rounds, warmUps = 0, roundsOf = () => rounds }, work) {
  const results = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = -warmUps; round < rounds; round += 1) {
    const first = (round + warmUps) % names.length;
    for (const name of [...names.slice(first), ...names.slice(0, first)]) {
      const done = (until) => Math.floor((until * roundsOf(name)) / rounds);
      if (done(round) === done(round + 1)) continue;
      const value = await work(name);
      if (round >= 0) results[name].push(value);
    }
  }
  return results;
}

/**
 * Runs a task in all contenders by turns.
 *
 * @param {Record<string, Contender>} contenders
 * @param {number} rounds
 * @param {string} task
 * @param {object} [settings]
 * @param {number} [warmUps] rounds that do not count
 * @returns {Promise<Record<string, any[]>>}
 */
export function interleave(contenders, rounds, task, settings, warmUps) {
  const run = (name) => contenders[name].run(task, settings);
  return byTurns(Object.keys(contenders), { rounds, warmUps }, run);
}

/**
 * Starts contenders for the time of some work.
 *
 * @param {Record<string, object>} gateways what each gets, by the name of its module
 * @param {(contenders: Record<string, Contender>) => Promise<T>} work
 * @returns {Promise<T>}
 * @template T
 */
export async function withContenders(gateways, work) {
  const contenders = {};
  try {
    for (const [name, gateway] of Object.entries(gateways)) {
      contenders[name] = await Contender.start(name, gateway);
    }
    return await work(contenders);
  } finally {
    await Promise.all(Object.values(contenders).map((contender) => contender.stop()));
  }
}

/** The floor and the kernel. */
export function withPair(gateway, work) {
  return withContenders({ floor: gateway, kernel: gateway }, work);
}

/**
 * The stream of a run, shaped like an async generator.
 *
 * Nothing starts before the first `next()`. Elements come from the core in batches; concurrent
 * `next()` calls are answered in order. `return()` and `throw()` stop the run and resolve when it
 * is over.
 *
 * @module
 */
import { traced } from './errors.js';
import { DONE, OrderedGenerator, close, pull, ready } from './generator.js';
import { native } from './native.js';
import { describeThrown } from './thrown.js';

/** The text of a signal's reason. */
export function reasonText(reason) {
  if (reason === undefined || reason === null) return undefined;
  const { name, message } = describeThrown(reason);
  return message || name || undefined;
}

/**
 * Lets a signal stop a run.
 *
 * @param {AbortSignal | undefined} signal
 * @returns {{ stopper: object, release: () => void }} what the core watches, and how to let go of
 *   the signal
 */
export function stopperFor(signal) {
  const stopper = new native.Stopper();
  if (!signal) return { stopper, release() {} };
  const stop = () => stopper.stop(reasonText(signal.reason));
  if (signal.aborted) {
    stop();
    return { stopper, release() {} };
  }
  signal.addEventListener('abort', stop, { once: true });
  return { stopper, release: () => signal.removeEventListener('abort', stop) };
}

/** An async generator over a run of the core. */
export class RunStream extends OrderedGenerator {
  #open;
  #throwOnError;
  #revive;
  #run;
  #starting;
  #release = () => {};
  #elements = [];
  #at = 0;
  #ended = false;

  /**
   * @param {() => { run: Promise<object>, release: () => void, throwOnError?: boolean }} open starts
   *   the run
   * @param {(batch: unknown[]) => object[]} revive makes elements of what the core sent
   */
  constructor(open, revive) {
    super();
    this.#open = open;
    this.#revive = revive;
  }

  [ready]() {
    if (this.#at >= this.#elements.length) return undefined;
    return { value: this.#elements[this.#at++], done: false };
  }

  async [pull]() {
    while (this.#at >= this.#elements.length) {
      if (this.#ended) return DONE;
      await this.#fill();
    }
    return this[ready]();
  }

  /** Whether the consumer wants the error of the run as a rejection. */
  get throwsOnError() {
    return this.#throwOnError === true;
  }

  /** Calls back when the run was stopped from outside, after its start. */
  async whenStopped(callback) {
    if (await this.#run?.stopped()) callback();
  }

  async [close]() {
    if (this.#ended) return;
    this.#end();
    // A run that never started has nothing to stop; one that failed to start is over.
    const run = await this.#starting?.catch(() => undefined);
    await run?.close();
  }

  async #fill() {
    try {
      this.#run ??= await traced(this.#start());
      const batch = this.#ended ? null : await this.#run.nextBatch();
      if (batch === null) {
        const stopped = this.#ended;
        this.#end();
        if (this.#throwOnError && !stopped) this.#run.rethrow();
      } else if (!this.#ended) {
        this.#elements = this.#revive(JSON.parse(batch));
        this.#at = 0;
      }
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  #start() {
    this.#starting ??= (async () => {
      const { run, release, throwOnError } = this.#open();
      this.#release = release;
      this.#throwOnError = throwOnError;
      return run;
    })();
    return this.#starting;
  }

  #end() {
    this.#ended = true;
    this.#elements = [];
    this.#at = 0;
    this.#release();
  }
}

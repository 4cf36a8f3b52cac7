/**
 * The functions of one agent that the core may call.
 *
 * @module
 */
import { toJson } from './json.js';
import { describeThrown, keepThrown } from './thrown.js';

/** Numbers functions and calls them for the core. */
export class Callbacks {
  #functions = [];
  #running = new Map();

  /**
   * @param {(argument: unknown, signal: AbortSignal) => unknown} callback
   * @returns {number} its number
   */
  register(callback) {
    return this.#functions.push(callback) - 1;
  }

  /**
   * Takes `{call, function, argument}` and answers `{value}` or `{error}`; takes `{cancel}` and
   * aborts the signal of that call; takes `{notify, argument}` and answers nothing of interest. Never
   * throws and never rejects.
   *
   * @param {string} request
   * @returns {Promise<string>}
   */
  dispatch = async (request) => {
    const { call, cancel, notify, function: number, argument } = JSON.parse(request);
    if (notify !== undefined) return this.#notify(notify, argument);
    if (cancel !== undefined) {
      this.#running.get(cancel)?.controller.abort();
      // It may never settle: nothing of it is kept.
      this.#running.delete(cancel);
      return '{}';
    }
    const controller = new AbortController();
    try {
      const result = this.#functions[number](argument, controller.signal);
      // Kept with its result: a promise that nothing refers to is collected, and its call would end as
      // failed at a time that only the garbage collector knows.
      this.#running.set(call, { controller, result });
      return reply(await result);
    } catch (error) {
      return failure(error);
    } finally {
      this.#running.delete(call);
    }
  };

  /** Calls an observer, whose failure changes nothing. */
  async #notify(number, argument) {
    try {
      await this.#functions[number](argument);
    } catch {
      // There is nobody to tell: the log is an observer itself.
    }
    return '{}';
  }
}

function reply(value) {
  try {
    return `{"value":${toJson(value)}}`;
  } catch (error) {
    const { message } = describeThrown(error);
    return failure(new TypeError(`the returned value cannot be written as JSON: ${message}`));
  }
}

function failure(error) {
  return toJson({ error: { ...describeThrown(error), thrown: keepThrown(error) } });
}

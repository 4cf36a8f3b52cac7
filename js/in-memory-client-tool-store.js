/**
 * A store of calls that wait for an answer, in the memory of the process.
 *
 * @module
 */
import { InvalidConfigError } from './errors.js';

/** Give one as `toolStore` to agents that share calls in one process. Values are copied. */
export class InMemoryClientToolStore {
  /** Records by conversation and call. */
  #records = new Map();

  /** Keeps a record, in the place of the one with its ids. */
  async put(entry) {
    this.#records.set(idOf(entry, 'put'), structuredClone(entry));
  }

  /** @returns {Promise<object | null>} */
  async get(key) {
    return structuredClone(this.#records.get(idOf(key, 'get')) ?? null);
  }

  async delete(key) {
    this.#records.delete(idOf(key, 'delete'));
  }

  /** @returns {Promise<object | null>} the newest record of a tool that has a result */
  async scanRecent({ conversationId, toolName }) {
    const found = [...this.#records.values()].filter(
      (entry) =>
        entry.conversationId === conversationId && entry.toolName === toolName && entry.result,
    );
    const [newest] = found.sort((one, other) => other.createdAt - one.createdAt);
    return structuredClone(newest ?? null);
  }
}

function idOf(key, call) {
  const { conversationId, toolUseId } = key ?? {};
  if (typeof conversationId !== 'string' || typeof toolUseId !== 'string' || toolUseId === '') {
    throw new InvalidConfigError(
      `InMemoryClientToolStore.${call}: conversationId and toolUseId must be strings`,
    );
  }
  return JSON.stringify([conversationId, toolUseId]);
}

/**
 * A driver of the core with the session store interface of the Claude Agent SDK.
 *
 * @module
 */
import { traced } from '../errors.js';
import { toJson } from '../json.js';
import { readEntries, readKey, requireText } from './key.js';

/** Sends calls to a driver as JSON text. */
export class NativeSessionStore {
  #native;

  /** @param {object} native a `NativeStore` of the addon */
  constructor(native) {
    this.#native = native;
  }

  async append(key, entries) {
    const texts = readEntries(entries, 'append').map(toJson);
    await traced(this.#native.append(keyText(key, 'append'), texts));
  }

  async load(key) {
    const { entries, damage } = JSON.parse(await traced(this.#native.load(keyText(key, 'load'))));
    if (damage) {
      process.emitWarning(`a session could only be read in part: ${damage}`, {
        code: 'OAK_STORE_DAMAGE',
      });
    }
    return entries;
  }

  async listSessions(projectKey) {
    const sessions = await this.#list(projectKey, 'listSessions');
    return sessions.map(({ sessionId, mtime }) => ({ sessionId, mtime }));
  }

  async listSessionSummaries(projectKey) {
    return this.#list(projectKey, 'listSessionSummaries');
  }

  async delete(key) {
    await traced(this.#native.delete(keyText(key, 'delete')));
  }

  async listSubkeys(key) {
    return JSON.parse(await traced(this.#native.listSubkeys(keyText(key, 'listSubkeys'))));
  }

  async #list(projectKey, call) {
    requireText(projectKey, 'projectKey', call);
    return JSON.parse(await traced(this.#native.listSessions(projectKey)));
  }
}

function keyText(key, call) {
  return toJson(readKey(key, call));
}

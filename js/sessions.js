/**
 * `agent.sessions`: the stored conversations of an agent.
 *
 * @module
 */
import { InvalidConfigError, traced } from './errors.js';
import { withCursor } from './page.js';
import { optionsJson } from './session.js';

/** The stored conversations of an agent. */
export class Sessions {
  #native;

  constructor(native) {
    this.#native = native;
  }

  async list(options) {
    const text = optionsJson(options, 'sessions.list options');
    const { sessions, nextCursor } = JSON.parse(await traced(this.#native.listSessions(text)));
    return withCursor(sessions, nextCursor);
  }

  async get(conversationId) {
    return JSON.parse(await traced(this.#native.getSession(idText(conversationId, 'get'))));
  }

  async delete(conversationId) {
    await traced(this.#native.deleteSession(idText(conversationId, 'delete')));
  }

  async rename(conversationId, title) {
    if (typeof title !== 'string') {
      throw new InvalidConfigError('sessions.rename: title must be a string');
    }
    await traced(
      this.#native.renameSession(idText(conversationId, 'rename'), title.toWellFormed()),
    );
  }

  async tag(conversationId, tag) {
    if (tag !== null && typeof tag !== 'string') {
      throw new InvalidConfigError('sessions.tag: tag must be a string, or null to take it away');
    }
    const text = tag === null ? undefined : tag.toWellFormed();
    await traced(this.#native.tagSession(idText(conversationId, 'tag'), text));
  }

  async fork(conversationId, options) {
    const text = optionsJson(options, 'sessions.fork options');
    return traced(this.#native.forkSession(idText(conversationId, 'fork'), text));
  }
}

function idText(id, call) {
  if (typeof id === 'string') return id.toWellFormed();
  throw new InvalidConfigError(`sessions.${call}: the conversation id must be a string`);
}

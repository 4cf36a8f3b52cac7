/**
 * What the killed processes share: the gateway, the database, and a folder.
 *
 * @module
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openSessionStore } from '../dist/index.js';
import { startEmulator } from '../emulator/index.js';
import { runSubject } from './child.js';
import { DATABASES } from './databases.js';
import { readExecutions } from './executions.js';

/** `envId` of the subjects: their project. */
const PROJECT = 'crash';
/** The gateway takes a moment, so that a process can be killed while it waits. */
const KNOBS = { latencyMs: 3 };

/**
 * One conversation: its processes so far, and what was stored after each.
 *
 * @typedef {object} Conversation
 * @property {string} id
 * @property {object} session `config.session`
 * @property {import('./child.js').Ending[]} lives
 * @property {boolean} watched whether the store is looked at after every process: a look may repair
 * @property {(object[] | Error | undefined)[]} stored
 */

/** Runs subjects and looks at what they leave. */
export class Stage {
  #database;
  #emulator;
  #store;
  #conversations = 0;

  /**
   * @param {object} scenario one of `SCENARIOS`
   * @param {string} driver a key of `DATABASES`
   */
  static async open(scenario, driver) {
    const stage = new Stage();
    stage.folder = mkdtempSync(join(tmpdir(), 'oak-crash-'));
    try {
      stage.#database = await DATABASES[driver](stage.folder);
      stage.#store = openSessionStore(stage.#database.sessions[0]);
      stage.#emulator = await startEmulator({ rules: scenario.rules, knobs: KNOBS });
      return stage;
    } catch (error) {
      await stage.close();
      throw error;
    }
  }

  /**
   * @param {number} turn chooses among the settings of the database
   * @returns {Conversation}
   */
  newConversation(turn) {
    this.#conversations += 1;
    const { sessions } = this.#database;
    const session = sessions[turn % sessions.length];
    const watched = Math.floor(turn / sessions.length) % 2 === 0;
    return { id: `c${this.#conversations}`, session, watched, lives: [], stored: [] };
  }

  /**
   * Runs the next process of a conversation and looks at the store, always after the last one.
   *
   * @param {Conversation} conversation
   * @param {object} [plan] as for `runSubject`
   */
  async run(conversation, plan) {
    const input = {
      gateway: this.#emulator.gatewayUrl,
      apiKey: this.#emulator.apiKey,
      session: conversation.session,
      conversation: conversation.id,
      executions: this.#executionsOf(conversation),
      resume: conversation.lives.length > 0,
    };
    const life = await runSubject(input, plan);
    conversation.lives.push(life);
    const look = conversation.watched || !life.killed;
    conversation.stored.push(look ? await this.#load(conversation.id) : undefined);
    return life;
  }

  /**
   * @param {Conversation} conversation
   * @returns {import('./judge-turn.js').Trial}
   */
  trial(conversation) {
    const mark = `This is ${conversation.id}.`;
    const requests = this.#emulator.requests.filter(({ body }) =>
      JSON.stringify(body.system ?? '').includes(mark),
    );
    const ids = new Set(requests.map(({ id }) => id));
    return {
      ...conversation,
      requests,
      violations: this.#emulator.violations.filter(({ id }) => ids.has(id)),
      executions: readExecutions(this.#executionsOf(conversation)),
    };
  }

  /** Requests that were refused, of whatever conversation. */
  violations() {
    return this.#emulator.violations;
  }

  async close() {
    await this.#emulator?.close();
    await this.#database?.close();
    rmSync(this.folder, { recursive: true, force: true });
  }

  #executionsOf({ id }) {
    return join(this.folder, `executions-${id}`);
  }

  async #load(sessionId) {
    try {
      return (await this.#store.load({ projectKey: PROJECT, sessionId })) ?? [];
    } catch (error) {
      return error;
    }
  }
}

import { readFacts } from './facts.js';
import { ModelMemory } from './memory.js';
import { compileRules } from './rules.js';
import { fillTemplate } from './template.js';

const REPLY_KEYS = new Set([
  'thinking',
  'signature',
  'text',
  'repeat',
  'toolCalls',
  'interleave',
  'blocks',
  'stopReason',
  'stopSequence',
  'usage',
  'startUsage',
  'id',
  'model',
  'status',
  'error',
  'headers',
  'body',
  'knobs',
]);

/**
 * The model of the emulator: picks the first rule that matches a request and works out its reply.
 */
export class ScriptedModel {
  #rules;
  memory = new ModelMemory();

  /** @param {object[]} rules */
  constructor(rules) {
    this.setRules(rules);
  }

  /**
   * Replaces the script; use counts start again.
   *
   * @param {object[]} rules
   */
  setRules(rules) {
    this.#rules = compileRules(rules);
  }

  /**
   * Takes the first matching rule and counts the use. Synchronous, so that two requests that arrive
   * together cannot take the same last use of a rule.
   *
   * @param {object} request a valid request in the form of the Messages API
   * @returns {{ index: number, rule: object, use: number, facts: import('./facts.js').Facts } | null}
   */
  take(request) {
    const facts = readFacts(request);
    const index = this.#rules.findIndex(
      ({ rule, matches, uses }) => uses < (rule.times ?? Infinity) && matches(request, facts),
    );
    if (index < 0) return null;
    const entry = this.#rules[index];
    entry.uses += 1;
    return { index, rule: entry.rule, use: entry.uses - 1, facts };
  }

  /**
   * Works out the reply of a taken rule: steps through a sequence, calls functions, fills templates.
   * What a function returns is not treated as a template: it may quote user text with braces.
   *
   * @param {object} request the same one
   * @param {NonNullable<ReturnType<ScriptedModel['take']>>} taken
   * @param {{ headers: object, signal: AbortSignal }} call
   * @returns {Promise<object>}
   */
  async reply(request, taken, call) {
    const context = { ...taken.facts, use: taken.use, ...call };
    let reply = stepOf(taken.rule.reply ?? '', taken.use);
    if (typeof reply !== 'function') return toObject(fillTemplate(reply, taken.facts));
    while (typeof reply === 'function') {
      reply = stepOf(await reply(request, context), taken.use);
    }
    return toObject(reply);
  }
}

function stepOf(reply, use) {
  return Array.isArray(reply) ? reply[Math.min(use, reply.length - 1)] : reply;
}

function toObject(reply) {
  if (typeof reply === 'string') return { text: reply };
  if (reply === null || typeof reply !== 'object') {
    throw new TypeError(`a reply must be a string or an object, not ${JSON.stringify(reply)}`);
  }
  const unknown = Object.keys(reply).find((key) => !REPLY_KEYS.has(key));
  if (unknown === undefined) return reply;
  throw new TypeError(`unknown reply key "${unknown}"; known: ${[...REPLY_KEYS].join(', ')}`);
}

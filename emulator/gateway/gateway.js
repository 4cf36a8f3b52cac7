import { planReply } from '../model/plan.js';
import { checkKnobs, mergeKnobs } from '../stream/knobs.js';
import { parseBody } from '../validator/parse-body.js';
import { endpointAt, errorsOf } from './endpoints.js';
import { messagesEndpoint } from './messages.js';
import { playAnswer } from './play.js';

/** The model endpoints: checks a request, asks the scripted model, plays the answer. */
export class Gateway {
  #model;
  #log;
  #apiKey;
  #knobs;
  #refuses;
  /** Number of answers that are being streamed right now. */
  openStreams = 0;

  /**
   * @param {object} parts
   * @param {import('../model/scripted-model.js').ScriptedModel} parts.model
   * @param {import('../server/request-log.js').RequestLog} parts.log
   * @param {string | null} parts.apiKey `null` lets everybody in
   * @param {() => object} parts.knobs knobs of the emulator at this moment
   * @param {boolean} parts.refuses whether invalid requests are refused, not only recorded
   */
  constructor({ model, log, apiKey, knobs, refuses }) {
    this.#model = model;
    this.#log = log;
    this.#apiKey = apiKey;
    this.#knobs = knobs;
    this.#refuses = refuses;
  }

  /**
   * @param {import('../server/exchange.js').Exchange} exchange
   * @param {string} path path below the gateway's base URL
   */
  async handle(exchange, path) {
    const endpoint = endpointAt(path);
    exchange.errorForm = errorsOf(endpoint ?? messagesEndpoint, this.#knobs()).errorForm;
    const record = this.#log.open(exchange);
    const bytes = await exchange.readBody();
    if (bytes === null) return;
    const parsed = parseBody(bytes);
    record.body = parsed.body ?? bytes.toString('utf8');
    if (!endpoint) {
      return exchange.sendError(404, 'not_found_error', `no such endpoint: ${path}`);
    }
    if (exchange.request.method !== 'POST') {
      return exchange.sendError(405, 'invalid_request_error', 'use POST', { allow: 'POST' });
    }
    if (!this.#isAuthorized(exchange)) {
      return exchange.sendError(401, 'authentication_error', 'invalid or missing API key');
    }
    const violation = parsed.violation ?? endpoint.validate(parsed.body, this.#model.memory);
    if (violation && (this.#refuses || !parsed.body)) {
      return this.#refuse(exchange, record, violation);
    }
    if (violation) this.#log.addViolation(record, violation);
    await this.#answer(exchange, endpoint, record, bytes.length);
  }

  #isAuthorized({ request }) {
    return this.#apiKey === null || request.headers.authorization === `Bearer ${this.#apiKey}`;
  }

  #refuse(exchange, record, violation) {
    this.#log.addViolation(record, violation);
    exchange.sendError(400, 'invalid_request_error', `${violation.rule}: ${violation.message}`);
  }

  async #answer(exchange, endpoint, record, inputChars) {
    let answer;
    try {
      answer = await this.#script(exchange, endpoint, record, inputChars);
    } catch (error) {
      const place = record.rule === undefined ? 'matching a rule' : `rules.${record.rule}.reply`;
      const message = `${place} failed: ${error?.message ?? error}`;
      return this.#refuse(exchange, record, { rule: 'script-error', message });
    }
    if (answer === null) {
      const text = lastText(endpoint.toRequest(record.body));
      const message = `no rule of the emulator matched the user text "${text}"`;
      return this.#refuse(exchange, record, { rule: 'no-rule', message });
    }
    await playAnswer(exchange, endpoint, answer, {
      body: record.body,
      memory: this.#model.memory,
      streamOpened: () => this.#countStream(exchange),
    });
  }

  /** Asks the script; `null` when it has no answer. Throws what the functions in it throw. */
  async #script({ request: { headers }, signal }, endpoint, record, inputChars) {
    const request = endpoint.toRequest(record.body);
    const taken = this.#model.take(request);
    if (taken === null) return null;
    record.rule = taken.index;
    const reply = await this.#model.reply(request, taken, { headers, signal });
    const knobs = mergeKnobs(this.#knobs(), taken.rule.knobs, failureKnobs(reply), reply.knobs);
    checkKnobs(knobs, 'reply.knobs');
    const { model } = request;
    const plan = planReply(
      reply,
      { model, inputChars, textChunk: knobs.textChunk },
      endpoint.dialect,
    );
    return { reply, knobs, plan };
  }

  #countStream(exchange) {
    this.openStreams += 1;
    // Until the client has read the rest, the stream counts as open.
    exchange.closed.then(() => (this.openStreams -= 1));
  }
}

/** `status`, `error` and `headers` may stand in a reply, where a script looks for them. */
function failureKnobs({ status, error, headers }) {
  const knobs = {};
  if (status !== undefined) knobs.status = status;
  if (error !== undefined) knobs.error = error;
  if (headers !== undefined) knobs.headers = headers;
  return knobs;
}

function lastText({ messages }) {
  const content = messages.at(-1).content;
  return (typeof content === 'string' ? content : JSON.stringify(content)).slice(0, 200);
}

import { planEvents } from '../model/events.js';
import { planMessage, planReply } from '../model/plan.js';
import { BodyWriter } from '../stream/body-writer.js';
import { checkKnobs, mergeKnobs } from '../stream/knobs.js';
import { streamEvents } from '../stream/stream-events.js';
import { hold, pause } from '../stream/wait.js';
import { parseBody } from '../validator/parse-body.js';
import { validateRequest } from '../validator/validate-request.js';
import { errorTypeOf } from './errors.js';

const HTML = '<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>';

/** The Messages endpoint: checks a request, asks the scripted model, plays the answer. */
export class MessagesGateway {
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
    const record = this.#log.open(exchange);
    const bytes = await exchange.readBody();
    if (bytes === null) return;
    const parsed = parseBody(bytes);
    record.body = parsed.body ?? bytes.toString('utf8');
    if (path !== '/v1/messages') {
      return exchange.sendError(404, 'not_found_error', `no such endpoint: ${path}`);
    }
    if (exchange.request.method !== 'POST') {
      return exchange.sendError(405, 'invalid_request_error', 'use POST', { allow: 'POST' });
    }
    if (!this.#isAuthorized(exchange)) {
      return exchange.sendError(401, 'authentication_error', 'invalid or missing API key');
    }
    const violation = parsed.violation ?? validateRequest(parsed.body, this.#model.memory);
    if (violation && (this.#refuses || !parsed.body)) {
      return this.#refuse(exchange, record, violation);
    }
    if (violation) this.#log.addViolation(record, violation);
    await this.#answer(exchange, record, bytes.length);
  }

  #isAuthorized({ request }) {
    return this.#apiKey === null || request.headers.authorization === `Bearer ${this.#apiKey}`;
  }

  #refuse(exchange, record, violation) {
    this.#log.addViolation(record, violation);
    exchange.sendError(400, 'invalid_request_error', `${violation.rule}: ${violation.message}`);
  }

  async #answer(exchange, record, inputChars) {
    const { body } = record;
    let answer;
    try {
      answer = await this.#script(exchange, record, inputChars);
    } catch (error) {
      const place = record.rule === undefined ? 'matching a rule' : `rules.${record.rule}.reply`;
      const message = `${place} failed: ${error?.message ?? error}`;
      return this.#refuse(exchange, record, { rule: 'script-error', message });
    }
    if (answer !== null) return this.#play(exchange, answer, body.stream === true);
    const message = `no rule of the emulator matched the user text "${lastText(body)}"`;
    this.#refuse(exchange, record, { rule: 'no-rule', message });
  }

  /** Asks the script; `null` when it has no answer. Throws what the functions in it throw. */
  async #script({ request, signal }, record, inputChars) {
    const { body } = record;
    const taken = this.#model.take(body);
    if (taken === null) return null;
    record.rule = taken.index;
    const reply = await this.#model.reply(body, taken, { headers: request.headers, signal });
    const knobs = mergeKnobs(this.#knobs(), taken.rule.knobs, failureKnobs(reply), reply.knobs);
    checkKnobs(knobs, 'reply.knobs');
    const plan = planReply(reply, { model: body.model, inputChars, textChunk: knobs.textChunk });
    return { reply, knobs, plan };
  }

  async #play(exchange, { reply, knobs, plan }, streams) {
    const { signal } = exchange;
    if (knobs.latencyMs > 0) await pause(knobs.latencyMs, signal);
    if (knobs.hangHeaders) await hold(signal);
    if (signal.aborted) return;
    if (knobs.dropConnection) return exchange.destroy();
    if (knobs.status >= 400) return sendFailure(exchange, reply, knobs);
    if (knobs.html) {
      return exchange.send(200, HTML, { 'content-type': 'text/html', ...knobs.headers });
    }
    const content = plan.parts
      .filter(({ start }) => start.type === 'thinking' || start.type === 'tool_use')
      .map(({ final }) => final);
    this.#model.memory.learnSignatures(content);
    const whole =
      streams && !knobs.json
        ? await this.#stream(exchange, plan, knobs)
        : await sendMessage(exchange, plan, knobs);
    if (whole) this.#model.memory.learnCompleted(content);
  }

  async #stream(exchange, plan, knobs) {
    const { response, signal } = exchange;
    response.writeHead(knobs.status ?? 200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      ...knobs.headers,
    });
    response.flushHeaders();
    this.openStreams += 1;
    // Until the client has read the rest, the stream counts as open.
    exchange.closed.then(() => (this.openStreams -= 1));
    return streamEvents(planEvents(plan), new BodyWriter(exchange, knobs), knobs, signal);
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

function sendFailure(exchange, reply, { status, error = {}, headers = {} }) {
  if (reply.body !== undefined) return exchange.send(status, reply.body, headers);
  const { type = errorTypeOf(status), message = `the script answers ${status}` } = error;
  exchange.sendError(status, type, message, headers);
}

async function sendMessage(exchange, plan, knobs) {
  const body = new BodyWriter(exchange, knobs);
  exchange.response.writeHead(knobs.status ?? 200, {
    'content-type': 'application/json',
    ...knobs.headers,
  });
  body.add(JSON.stringify(planMessage(plan)));
  await body.end();
  return !exchange.signal.aborted;
}

function lastText({ messages }) {
  const content = messages.at(-1).content;
  return (typeof content === 'string' ? content : JSON.stringify(content)).slice(0, 200);
}

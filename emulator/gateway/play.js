import { BodyWriter } from '../stream/body-writer.js';
import { streamEvents } from '../stream/stream-events.js';
import { hold, pause } from '../stream/wait.js';
import { errorsOf } from './endpoints.js';
import { errorTypeOf } from './errors.js';

const HTML = '<!doctype html><html><body><h1>502 Bad Gateway</h1></body></html>';

/**
 * Sends the answer of the script in the way that its knobs ask for.
 *
 * @param {import('../server/exchange.js').Exchange} exchange
 * @param {import('./messages.js').Endpoint} endpoint
 * @param {{ reply: object, knobs: object, plan: import('../model/plan.js').Plan }} answer
 * @param {object} call
 * @param {any} call.body body of the request
 * @param {import('../model/memory.js').ModelMemory} call.memory
 * @param {() => void} call.streamOpened
 */
export async function playAnswer(exchange, endpoint, answer, { body, memory, streamOpened }) {
  const { reply, knobs, plan } = answer;
  const { signal } = exchange;
  exchange.errorForm = errorsOf(endpoint, knobs).errorForm;
  if (knobs.latencyMs > 0) await pause(knobs.latencyMs, signal);
  if (knobs.hangHeaders) await hold(signal);
  if (signal.aborted) return;
  if (knobs.dropConnection) return exchange.destroy();
  if (knobs.status >= 400) return sendFailure(exchange, reply, knobs);
  if (knobs.html) {
    return exchange.send(200, HTML, { 'content-type': 'text/html', ...knobs.headers });
  }
  const content = endpoint.signsThinking ? rememberedContent(plan) : [];
  memory.learnSignatures(content);
  const streams = body.stream === true && !knobs.json;
  if (streams) streamOpened();
  const whole = streams
    ? await streamAnswer(exchange, endpoint, endpoint.events(plan, body), knobs)
    : await sendMessage(exchange, endpoint.message(plan), knobs);
  if (whole) memory.learnCompleted(content);
}

function rememberedContent({ parts }) {
  return parts
    .filter(({ start }) => start.type === 'thinking' || start.type === 'tool_use')
    .map(({ final }) => final);
}

function sendFailure(exchange, reply, { status, error, headers = {} }) {
  if (reply.body !== undefined) return exchange.send(status, reply.body, headers);
  const whole = { type: errorTypeOf(status), message: `the script answers ${status}`, ...error };
  exchange.sendJson(status, exchange.errorForm(whole, exchange.id), headers);
}

async function streamAnswer(exchange, endpoint, events, knobs) {
  const { response, signal } = exchange;
  response.writeHead(knobs.status ?? 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...knobs.headers,
  });
  response.flushHeaders();
  const { error } = errorsOf(endpoint, knobs).wire(knobs);
  const wire = { ...endpoint.wire(knobs), error };
  return streamEvents(events, wire, new BodyWriter(exchange, knobs), knobs, signal);
}

async function sendMessage(exchange, message, knobs) {
  const body = new BodyWriter(exchange, knobs);
  exchange.response.writeHead(knobs.status ?? 200, {
    'content-type': 'application/json',
    ...knobs.headers,
  });
  body.add(JSON.stringify(message));
  await body.end();
  return !exchange.signal.aborted;
}

/**
 * A server that repeats recorded answers: `replay.js <gateway of the emulator as JSON>`. It costs
 * next to nothing, so that what is measured is the client. Prints its gateway as JSON.
 *
 * @module
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

import { body, headersFor } from './floor.js';
import { PROMPTS } from './script.js';

/** Bytes of one write. */
const PIECE = 16 << 10;

/** How an answer is cut into writes, and what is between two of them. */
const SHAPES = {
  short: { cut: pieces, between: () => undefined },
  stream: { cut: pieces, between: () => undefined },
  trickle: { cut: events, between: nextTurn },
  paced: { cut: events, between: () => sleep(1) },
};
const emulator = JSON.parse(process.argv[2]);
const answers = await Promise.all(Object.entries(SHAPES).map(record));

/** Asks the emulator once for each prompt. */
async function record([name, { cut, between }]) {
  const response = await fetch(`${emulator.gatewayUrl}/v1/messages`, {
    method: 'POST',
    headers: headersFor(emulator.apiKey),
    body: body(PROMPTS[name]),
  });
  if (!response.ok) throw new Error(`the emulator refused to answer: ${await response.text()}`);
  const writes = cut(Buffer.from(await response.arrayBuffer())).map(frame);
  // In quotes: no prompt is found in another, whatever stands around it in the request.
  return { prompt: JSON.stringify(PROMPTS[name]), writes, between };
}

function pieces(bytes) {
  const count = Math.ceil(bytes.length / PIECE);
  return Array.from({ length: count }, (_, at) => bytes.subarray(at * PIECE, (at + 1) * PIECE));
}

function events(bytes) {
  const texts = bytes.toString('utf8').split(/(?<=\n\n)/);
  return texts.map((event) => Buffer.from(event));
}

/** A chunk of the chunked transfer encoding, so that a write is one call of the socket. */
function frame(bytes) {
  const [head, end] = [`${bytes.length.toString(16)}\r\n`, '\r\n'];
  return Buffer.concat([Buffer.from(head), bytes, Buffer.from(end)]);
}

const server = createServer(async (request, response) => {
  const asked = Buffer.concat(await request.toArray()).toString('utf8');
  const answer = answers.find(({ prompt }) => asked.includes(prompt));
  if (!answer) return response.writeHead(400).end();
  response.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'transfer-encoding': 'chunked',
  });
  response.flushHeaders();
  const { socket } = response;
  for (const bytes of answer.writes) {
    if (!socket.write(bytes)) await once(socket, 'drain');
    await answer.between();
  }
  response.end();
});
server.listen(0, '127.0.0.1', () => {
  const { pathname } = new URL(emulator.gatewayUrl);
  const gatewayUrl = `http://127.0.0.1:${server.address().port}${pathname}`;
  process.stdout.write(`${JSON.stringify({ ...emulator, gatewayUrl })}\n`);
});
process.stdin.once('end', () => process.exit()).resume();

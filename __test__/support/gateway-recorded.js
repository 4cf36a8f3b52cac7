/**
 * Recorded turns of another engine: what its model answered, what its stream showed, and what it
 * sent. Its tools came from an MCP server; here they have their bare names.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { validateRequest } from '../../emulator/index.js';
import { unmarked } from './gateway.js';

const FOLDER = new URL('../fixtures/claude-sdk/', import.meta.url);
const PREFIX = 'mcp__demo__';

/**
 * @param {string} name file in `fixtures/claude-sdk`
 * @returns {{ messages: object[], requests?: object[][], tools?: object[] }}
 */
export function recorded(name) {
  const source = readFileSync(new URL(`${name}.json`, FOLDER), 'utf8');
  return JSON.parse(source.replaceAll(PREFIX, ''));
}

/** The content of each answer of the model, in order. */
export function answersOf({ messages }) {
  const answers = new Map();
  for (const { type, id, content } of messages) {
    if (type === 'assistant') answers.set(id, [...(answers.get(id) ?? []), ...content]);
  }
  return [...answers.values()];
}

/** The events of each answer of the model, in order, as the gateway sent them. */
export function streamsOf({ messages }) {
  const streams = [];
  for (const { type, event } of messages) {
    if (event?.type === 'message_start') streams.push([]);
    if (type === 'stream_event') streams.at(-1).push(event);
  }
  return streams;
}

/** The tool results that the engine made, as `[id, text, isError]`; images are left out. */
export function resultsOf({ messages }) {
  return messages
    .filter(({ type }) => type === 'user')
    .flatMap(({ content }) => content)
    .map((block) => [block.tool_use_id, resultText(block.content), block.is_error === true]);
}

function resultText(content) {
  return typeof content === 'string' ? content : content.map(({ text = '' }) => text).join('');
}

/** A conversation in one form: no cache marks, results as text, no flag on a success. */
export function plain(messages) {
  return unmarked(messages).map(({ role, content }) => ({
    role,
    content: content.map((block) =>
      block.type === 'tool_result'
        ? {
            type: 'tool_result',
            id: block.tool_use_id,
            text: resultText(block.content),
            failed: block.is_error === true,
          }
        : block,
    ),
  }));
}

/**
 * What a stream tells, as a list of what a reader would note. Neighbouring pieces of text are one
 * entry unless `whole` is false.
 *
 * @param {object[]} elements
 */
export function notesOf(elements, { whole = true } = {}) {
  const notes = [];
  for (const element of elements) {
    const note = noteOf(element);
    if (note === undefined) continue;
    const last = notes.at(-1);
    const isText = note[0] === 'text' || note[0] === 'thinking';
    if (whole && isText && last?.[0] === note[0] && last[2] === note[2]) last[1] += note[1];
    else notes.push(note);
  }
  return notes.map(([kind, ...rest]) => [
    kind,
    ...(kind === 'text' || kind === 'thinking' ? rest.slice(0, 1) : rest),
  ]);
}

function noteOf({ sessionUpdate, content, messageId, toolCallId, title, status, result }) {
  switch (sessionUpdate) {
    case 'agent_message_chunk':
      return ['text', content.text, messageId];
    case 'agent_thought_chunk':
      return ['thinking', content.text, messageId];
    case 'tool_call':
      return ['call', toolCallId, title];
    case 'tool_call_update':
      return status === 'in_progress' ? undefined : ['result', toolCallId, status, result];
    default:
      return undefined;
  }
}

/**
 * A gateway that plays recorded events, one list for each request.
 *
 * @param {import('node:test').TestContext} t
 * @param {object[][]} streams
 * @returns {Promise<{ url: string, bodies: object[] }>} its address, and what it was asked
 */
export async function playing(t, streams) {
  const bodies = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request));
    const events = streams[bodies.push(body) - 1] ?? [];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    }
    response.end();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
    assert.deepEqual(bodies.map((body) => validateRequest(body)).filter(Boolean), []);
  });
  return { url: `http://127.0.0.1:${server.address().port}`, bodies };
}

async function textOf(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}

/** The tools that the recorded engine was given. */
export function demoTools({ tools = [] } = {}) {
  const schemaOf = (name) => tools.find((tool) => tool.name === name)?.input_schema;
  const demo = {
    echo: ({ text, mode = 'a' }) => `echo:${text}:${mode}`,
    peek: ({ text }) => `peek:${text}`,
    boom() {
      throw new Error('kaboom');
    },
    async fail() {
      throw new Error('soft failure');
    },
    // Images come with MCP servers.
    pic: () => 'here',
    structured: () => ({ a: 1 }),
  };
  return Object.entries(demo).map(([name, execute]) => ({
    name,
    description: name,
    parameters: schemaOf(name) ?? { type: 'object' },
    readOnly: name === 'peek',
    execute,
  }));
}

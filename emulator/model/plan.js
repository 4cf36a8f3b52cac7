import { newId } from './ids.js';
import { parseOr } from './json.js';
import { signThinking } from './signature.js';
import { chunkText, splitText } from './text.js';

/**
 * @typedef {object} Part one content block of an answer
 * @property {object} start block as announced by `content_block_start`
 * @property {Iterable<object>} deltas
 * @property {object} final block as it stands in the complete message
 * @property {string} [json] of a call: its input as text, broken when the script wants it so
 * @property {number} chars length of all deltas, the base of the token count
 * @property {boolean} parallel whether its deltas may be mixed with its neighbours'
 *
 * @typedef {object} Plan a complete answer, ready to be streamed or sent as one JSON message
 * @property {string} id
 * @property {string} model
 * @property {Part[]} parts
 * @property {string | null} stopReason
 * @property {string | null} stopSequence
 * @property {object} startUsage
 * @property {object} usage
 */

/**
 * @typedef {object} Dialect what the protocols write differently in otherwise equal answers
 * @property {string} messagePrefix of message ids
 * @property {string} callPrefix of the ids of calls
 * @property {string} noInput text streamed as the input of a call without arguments
 */

/**
 * Turns a reply into a plan.
 *
 * @param {object} reply reply object of a rule
 * @param {{ model: string, inputChars: number, textChunk?: number }} request
 * @param {Dialect} dialect
 * @returns {Plan}
 */
export function planReply(reply, { model, inputChars, textChunk = 12 }, dialect) {
  const parts = reply.blocks
    ? reply.blocks.map((block) => blockPart(block, textChunk, dialect))
    : replyParts(reply, textChunk, dialect);
  const usage = { ...defaultUsage(inputChars, parts), ...reply.usage };
  const hasCalls = parts.some(({ start }) => start.type === 'tool_use');
  return {
    id: reply.id ?? newId(dialect.messagePrefix),
    model: reply.model ?? model,
    parts,
    stopReason: reply.stopReason === undefined ? defaultStop(hasCalls) : reply.stopReason,
    stopSequence: reply.stopSequence ?? null,
    startUsage: withoutNull({ ...usage, output_tokens: 1, ...reply.startUsage }),
    usage: withoutNull(usage),
  };
}

/**
 * The plan as the JSON message that a request without `stream` gets.
 *
 * @param {Plan} plan
 * @returns {object}
 */
export function planMessage(plan) {
  return {
    id: plan.id,
    type: 'message',
    role: 'assistant',
    model: plan.model,
    content: plan.parts.map(({ final }) => final),
    stop_reason: plan.stopReason,
    stop_sequence: plan.stopSequence,
    usage: plan.usage,
  };
}

function replyParts(reply, textChunk, dialect) {
  const parts = [];
  if (reply.thinking !== undefined) {
    parts.push(thinkingPart(reply.thinking, reply.signature, textChunk));
  }
  if (reply.text !== undefined) parts.push(textPart(reply.text, reply.repeat ?? 1, textChunk));
  const parallel = reply.interleave === true;
  for (const call of reply.toolCalls ?? []) parts.push(callPart(call, parallel, dialect));
  return parts;
}

function blockPart(block, textChunk, dialect) {
  switch (block.type) {
    case 'text':
      return textPart(block.text, 1, textChunk);
    case 'thinking':
      return thinkingPart(block.thinking, block.signature, textChunk);
    case 'tool_use':
      return callPart(block, false, dialect);
    default:
      return { start: block, deltas: [], final: block, chars: 0, parallel: false };
  }
}

function textPart(text, repeat, textChunk) {
  const pieces = Array.isArray(text) ? text : chunkText(text, textChunk);
  return {
    start: { type: 'text', text: '' },
    deltas: {
      *[Symbol.iterator]() {
        for (let round = 0; round < repeat; round += 1) {
          for (const piece of pieces) yield { type: 'text_delta', text: piece };
        }
      },
    },
    // Joined only when somebody asks: a long benchmark stream never needs the whole text.
    get final() {
      return { type: 'text', text: pieces.join('').repeat(repeat) };
    },
    chars: totalLength(pieces) * repeat,
    parallel: false,
  };
}

function thinkingPart(thinking, signature, textChunk) {
  const signed = signature === undefined ? signThinking(thinking) : (signature ?? '');
  const deltas = chunkText(thinking, textChunk).map((piece) => ({
    type: 'thinking_delta',
    thinking: piece,
  }));
  if (signed !== '') deltas.push({ type: 'signature_delta', signature: signed });
  return {
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas,
    final: { type: 'thinking', thinking, signature: signed },
    chars: thinking.length,
    parallel: false,
  };
}

function callPart(call, parallel, { callPrefix, noInput }) {
  const id = call.id ?? newId(callPrefix);
  const json = call.raw ?? inputText(call.input, noInput);
  const pieces = fragmentsOf(json, call.fragments ?? 2);
  return {
    start: { type: 'tool_use', id, name: call.name, input: {} },
    deltas: pieces.map((piece) => ({ type: 'input_json_delta', partial_json: piece })),
    final: { type: 'tool_use', id, name: call.name, input: call.input ?? parseOr(json, {}) },
    json,
    chars: totalLength(pieces),
    parallel,
  };
}

function inputText(input, noInput) {
  return input === undefined || Object.keys(input).length === 0 ? noInput : JSON.stringify(input);
}

function fragmentsOf(json, fragments) {
  if (Array.isArray(fragments)) return fragments;
  if (fragments <= 0) return [];
  if (fragments === 1) return [json];
  return json === '' ? [''] : ['', ...splitText(json, fragments - 1)];
}

function totalLength(pieces) {
  return pieces.reduce((sum, { length }) => sum + length, 0);
}

/** `null` leaves a field out: some gateways report input tokens only once. */
function withoutNull(usage) {
  return Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null));
}

function defaultStop(hasCalls) {
  return hasCalls ? 'tool_use' : 'end_turn';
}

function defaultUsage(inputChars, parts) {
  const outputChars = parts.reduce((sum, { chars }) => sum + chars, 0);
  return {
    input_tokens: Math.max(1, Math.ceil(inputChars / 4)),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens: Math.max(1, Math.ceil(outputChars / 4)),
  };
}

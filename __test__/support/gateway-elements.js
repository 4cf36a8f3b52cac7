/**
 * Reading the elements of a stream of the format `'acp'`, and what always holds for them.
 *
 * @module
 */
import assert from 'node:assert/strict';

/**
 * Reads a stream to its end and checks the rules that every stream keeps.
 *
 * @param {AsyncIterable<object>} stream
 * @returns {Promise<object[]>} elements
 */
export async function readStream(stream) {
  const elements = [];
  for await (const element of stream) elements.push(element);
  checkStream(elements);
  return elements;
}

/**
 * Idle once and last; no phase twice in a row; times are numbers; every call is announced once,
 * then updated, then ended once.
 *
 * @param {object[]} elements
 */
export function checkStream(elements) {
  const phases = elements.filter(({ sessionUpdate }) => sessionUpdate === 'agent_phase');
  assert.equal(phases.filter(({ phase }) => phase === 'idle').length, 1, 'idle comes once');
  assert.equal(elements.at(-1).phase, 'idle', 'idle comes last');
  assert.equal(typeof elements.at(-1).stopReason, 'string');
  for (const element of elements) {
    if (['agent_phase', 'log'].includes(element.sessionUpdate)) {
      assert.equal(typeof element.timestamp, 'number');
    }
  }
  const changes = phases.filter(({ restart }) => !restart).map(phaseName);
  changes.forEach((name, at) => assert.notEqual(name, changes[at - 1], 'a phase is told once'));
  checkCalls(elements);
}

function checkCalls(elements) {
  const states = new Map();
  for (const { sessionUpdate, toolCallId, status } of elements) {
    if (sessionUpdate === 'tool_call') {
      assert.ok(!states.has(toolCallId), `call ${toolCallId} is announced once`);
      assert.equal(status, 'in_progress');
      states.set(toolCallId, 'open');
    } else if (sessionUpdate === 'tool_call_update') {
      assert.equal(states.get(toolCallId), 'open', `call ${toolCallId} is open`);
      if (status !== 'in_progress') states.set(toolCallId, status);
    }
  }
  assert.ok(![...states.values()].includes('open'), 'every call has ended');
}

/** The phases in order, with the tool where there is one. */
export function phasesOf(elements) {
  const isPhase = ({ sessionUpdate, restart }) => sessionUpdate === 'agent_phase' && !restart;
  return elements.filter(isPhase).map(phaseName);
}

function phaseName({ phase, toolName }) {
  return toolName === undefined ? phase : `${phase} ${toolName}`;
}

/** The text that a consumer shows in the end: what a restart made void is dropped. */
export function textOf(elements) {
  return pieces(elements, 'agent_message_chunk');
}

/** The thinking that a consumer shows in the end. */
export function thoughtOf(elements) {
  return pieces(elements, 'agent_thought_chunk');
}

function pieces(elements, kind) {
  const shown = elements.reduce((list, element) => {
    if (element.restart) return list.filter(({ messageId }) => messageId !== element.messageId);
    return element.sessionUpdate === kind ? [...list, element] : list;
  }, []);
  return shown.map(({ content }) => content.text).join('');
}

/** The chunks as they came. */
export function chunksOf(elements) {
  return elements.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk');
}

/** The restarts that were told. */
export function restartsOf(elements) {
  return elements.filter(({ restart }) => restart === true);
}

/** The last element. */
export function idleOf(elements) {
  return elements.at(-1);
}

/** The one error that was told; fails when there is none or more than one. */
export function errorOf(elements) {
  const errors = errorsOf(elements);
  assert.equal(errors.length, 1, `one error, not ${errors.length}`);
  return errors[0];
}

/** All errors that were told. */
export function errorsOf(elements) {
  return elements.filter(
    ({ sessionUpdate, level }) => sessionUpdate === 'log' && level === 'error',
  );
}

/** How calls ended: `[id, status, result or message]`. */
export function endsOf(elements) {
  return elements
    .filter(
      ({ sessionUpdate, status }) =>
        sessionUpdate === 'tool_call_update' && status !== 'in_progress',
    )
    .map(({ toolCallId, status, result, error }) => [
      toolCallId,
      status,
      status === 'failed' ? error.message : result,
    ]);
}

/** The last token counts. */
export function totalsOf(elements) {
  return elements.findLast(({ sessionUpdate }) => sessionUpdate === 'usage_update')?.totals;
}

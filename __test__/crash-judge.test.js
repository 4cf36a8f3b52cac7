/** The judge of the crash harness finds every kind of fault. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { judgeTurn } from '../crash/judge-turn.js';
import { PROMPT, PROMPT_OF_RESUME, TEXT_OF_RESUME, resultOf } from '../crash/turn-model.js';

const UNKNOWN = 'Its outcome is unknown.';
const FIRST = 1;
const SECOND = 2;

let ids = 0;

function entry(role, content, more = {}) {
  ids += 1;
  return { type: role, uuid: `u${ids}`, parentUuid: null, message: { role, content }, ...more };
}

const call = (id, name = 'pay') => entry('assistant', [{ type: 'tool_use', id, name, input: {} }]);
const result = (id, content, isError = false) =>
  entry('user', [{ type: 'tool_result', tool_use_id: id, content, is_error: isError }]);

/** A turn that was killed in a tool, and went on. */
function killedInTool() {
  const before = [entry('user', PROMPT), call('t1')];
  const after = [
    ...before,
    result('t1', UNKNOWN, true),
    entry('user', PROMPT_OF_RESUME),
    entry('assistant', [{ type: 'text', text: TEXT_OF_RESUME }]),
  ];
  const idle = { event: 'idle', stopReason: 'end_turn' };
  return {
    lives: [
      { pid: FIRST, killed: true, code: null, hung: false, events: [], stderr: '' },
      { pid: SECOND, killed: false, code: 0, hung: false, events: [idle], stderr: '' },
    ],
    stored: [before, after],
    executions: [{ call: 't1', tool: 'pay', pid: FIRST }],
    requests: [],
    violations: [],
  };
}

/** Faults of the good trial after a change. */
function faultsAfter(change) {
  const trial = killedInTool();
  change(trial);
  return judgeTurn(trial).faults.map(({ kind, what }) => `${kind}: ${what}`);
}

function assertFault(change, pattern) {
  const faults = faultsAfter(change);
  assert.ok(
    faults.some((fault) => pattern.test(fault)),
    `${pattern} is not among ${JSON.stringify(faults)}`,
  );
}

test('a good trial has no faults; the call without result is counted', () => {
  assert.deepEqual(judgeTurn(killedInTool()), { faults: [], unknown: 1 });
});

test('an unwatched process is judged by what is there in the end', () => {
  assert.deepEqual(
    faultsAfter((trial) => (trial.stored[0] = undefined)),
    [],
  );
  const gone = (trial) => {
    trial.stored[0] = undefined;
    trial.stored[1].splice(1, 2);
  };
  assertFault(gone, /^lost: the call of pay/);
});

test('lost', () => {
  assertFault((trial) => trial.stored[0].pop(), /^lost: the call of pay, which had started/);
  assertFault((trial) => trial.stored[1].shift(), /^lost: entry user u\d+ of an earlier process/);
  assertFault((trial) => trial.stored[1].pop(), /^lost: "Went on\." of a turn that had ended/);
  assertFault((trial) => {
    trial.stored[0].shift();
    trial.stored[1].shift();
  }, /^lost: the prompt/);
  assertFault((trial) => {
    const content = [{ type: 'tool_result', tool_use_id: 't1', content: 'other' }];
    trial.requests.push({ body: { messages: [{ role: 'user', content }] } });
  }, /^lost: the result of t1, which the model had seen/);
  assertFault((trial) => {
    trial.lives[0].events.push({ event: 'idle', stopReason: 'end_turn' });
  }, /^lost: 3 results of a turn that had ended/);
});

test('repeated', () => {
  assertFault(
    (trial) => trial.executions.push({ call: 't1', tool: 'pay', pid: FIRST }),
    /^repeated: executions: t1/,
  );
  assertFault(
    (trial) => trial.executions.push({ call: 't9', tool: 'pay', pid: SECOND }),
    /^repeated: a later process ran pay/,
  );
  assertFault((trial) => trial.stored[1].push(trial.stored[1][0]), /^repeated: entries: u\d+/);
  assertFault(
    (trial) => trial.stored[1].push(result('t1', UNKNOWN, true)),
    /^repeated: results: t1/,
  );
});

test('invalid', () => {
  const second = (trial) => trial.lives[1];
  assertFault((trial) => (second(trial).events[0].stopReason = 'error'), /^invalid: .*with error/);
  assertFault((trial) => (second(trial).events = []), /^invalid: process 2 exited/);
  assertFault((trial) => (second(trial).hung = true), /^invalid: process 2 did not end/);
  assertFault(
    (trial) => second(trial).events.unshift({ event: 'threw', code: 'E_X', message: 'no' }),
    /^invalid: process 2: E_X no/,
  );
  assertFault(
    (trial) => second(trial).events.unshift({ event: 'nothing' }),
    /^invalid: a stored session was not found/,
  );
  assertFault((trial) => trial.violations.push({ message: 'm' }), /^invalid: a request: m/);
  assertFault((trial) => (trial.stored[1] = new Error('torn')), /^invalid: the transcript: torn/);
  assertFault((trial) => trial.stored[1].splice(2, 1), /^invalid: call pay has no result/);
  assertFault(
    (trial) => (trial.stored[1][2] = result('t1', resultOf('look', 't1'))),
    /^invalid: call pay has a result that it did not give/,
  );
  assertFault((trial) => {
    trial.executions = [];
    trial.stored[1][2] = result('t1', resultOf('pay', 't1'));
  }, /^invalid: call pay has a result that it did not give/);
  assertFault(
    (trial) => trial.stored[1].push(result('t5', 'x')),
    /^invalid: a result without call: t5/,
  );
  assertFault(
    (trial) => trial.stored[1].push(entry('user', 'x', { parentUuid: 'nobody' })),
    /^invalid: an entry \(user\) whose parent/,
  );
});

/**
 * Judges a turn whose processes were killed, from outside: by what they told, what the tools did, what
 * the gateway saw and what is stored.
 *
 * @module
 */
import { blocksIn, repeatedIn, resultText, says } from './transcript.js';
import {
  LAST_TEXT,
  PROMPT,
  PROMPT_OF_RESUME,
  TEXT_OF_RESUME,
  TOOLS,
  resultOf,
} from './turn-model.js';

const UNKNOWN = /outcome is unknown/;

/**
 * What is there to judge.
 *
 * @typedef {object} Trial
 * @property {import('./child.js').Ending[]} lives processes of the conversation, one after the other; all
 *   but the last were killed
 * @property {(object[] | Error | undefined)[]} stored entries after each life, or why they did not load;
 *   nothing where nobody looked
 * @property {{ call: string, tool: string, pid: number }[]} executions
 * @property {object[]} requests what the gateway was asked, in order
 * @property {{ message: string }[]} violations requests that it refused
 */

/**
 * @param {Trial} trial
 * @returns {{ faults: { kind: 'lost' | 'repeated' | 'invalid', what: string }[], unknown: number }}
 */
export function judgeTurn(trial) {
  const unreadable = trial.stored.filter((entries) => entries instanceof Error);
  if (unreadable.length) {
    const faults = unreadable.map(({ message }) => invalid(`the transcript: ${message}`));
    return { faults, unknown: 0 };
  }
  const faults = [
    ...wrongEnds(trial),
    ...wrongTranscript(trial.stored.at(-1), trial.executions),
    ...lostTurns(trial),
    ...lostEntries(trial.stored.filter(Boolean)),
    ...lostCalls(trial),
    ...lostResults(trial),
    ...repeated(trial),
  ];
  const results = blocksIn(trial.stored.at(-1), 'tool_result');
  return { faults, unknown: results.filter((result) => UNKNOWN.test(resultText(result))).length };
}

const invalid = (what) => ({ kind: 'invalid', what });
const lost = (what) => ({ kind: 'lost', what });

function told(life, name) {
  return life.events.find(({ event }) => event === name);
}

/** A killed process has not failed before, the last one ends as it should. */
function wrongEnds({ lives, violations }) {
  const faults = violations.map(({ message }) => invalid(`a request: ${message}`));
  lives.forEach((life, at) => {
    const name = `process ${at + 1}`;
    const idle = told(life, 'idle');
    if (life.hung) faults.push(invalid(`${name} did not end`));
    for (const event of ['threw', 'log']) {
      const error = told(life, event);
      if (error) faults.push(invalid(`${name}: ${error.code} ${error.message}`));
    }
    if (idle && idle.stopReason !== 'end_turn') {
      faults.push(invalid(`${name} ended with ${idle.stopReason}`));
    }
    if (!life.killed && (!idle || life.code !== 0)) {
      faults.push(invalid(`${name} exited with ${life.code} ${life.stderr.trim()}`));
    }
  });
  return faults;
}

/** Each call has its result, and a result that is no error comes from a call that ran. */
function wrongTranscript(entries, executions) {
  const faults = [];
  const results = blocksIn(entries, 'tool_result');
  const uses = blocksIn(entries, 'tool_use');
  for (const { id, name } of uses) {
    const result = results.find((result) => result.tool_use_id === id);
    if (!result) {
      faults.push(invalid(`call ${name} has no result`));
    } else if (!result.is_error) {
      const ran = executions.some(({ call }) => call === id);
      if (!ran || resultText(result) !== resultOf(name, id)) {
        faults.push(invalid(`call ${name} has a result that it did not give`));
      }
    }
  }
  for (const { tool_use_id: id } of results) {
    if (!uses.some((use) => use.id === id)) faults.push(invalid(`a result without call: ${id}`));
  }
  return [...faults, ...brokenChain(entries)];
}

function brokenChain(entries) {
  const known = new Set();
  const orphans = entries.filter(({ uuid, parentUuid }) => {
    const isOrphan = parentUuid != null && !known.has(parentUuid);
    known.add(uuid);
    return isOrphan;
  });
  return orphans.map(({ type }) =>
    invalid(`an entry (${type}) whose parent is not in front of it`),
  );
}

/** A stream that had ended was acknowledged. */
function lostTurns({ lives, stored }) {
  return lives.flatMap((life, at) => {
    const faults = [];
    if (at > 0 && told(life, 'nothing') && stored[at - 1]?.length > 0) {
      faults.push(invalid('a stored session was not found'));
    }
    if (!told(life, 'idle')) return faults;
    const [prompt, answer] = at === 0 ? [PROMPT, LAST_TEXT] : [PROMPT_OF_RESUME, TEXT_OF_RESUME];
    const entries = stored[at] ?? stored.at(-1);
    if (!says(entries, 'user', prompt)) faults.push(lost(`"${prompt}" of a turn that had ended`));
    if (!says(entries, 'assistant', answer)) {
      faults.push(lost(`"${answer}" of a turn that had ended`));
    }
    if (at === 0) {
      const results = blocksIn(entries, 'tool_result').filter((result) => !result.is_error);
      const missing = Object.keys(TOOLS).length - results.length;
      if (missing !== 0) faults.push(lost(`${missing} results of a turn that had ended`));
    }
    return faults;
  });
}

/** What was stored once stays as it is. */
function lostEntries(stored) {
  return stored.slice(1).flatMap((entries, at) => {
    const changed = stored[at].filter(
      (entry, place) => JSON.stringify(entry) !== JSON.stringify(entries[place]),
    );
    return changed.map(({ type, uuid }) => lost(`entry ${type} ${uuid} of an earlier process`));
  });
}

/** I1: a tool starts when its call is stored, and what led to it. */
function lostCalls({ stored, executions, lives }) {
  const first = stored[0] ?? stored.at(-1);
  const uses = blocksIn(first, 'tool_use');
  const faults = executions
    .filter(({ call, pid }) => pid === lives[0].pid && !uses.some(({ id }) => id === call))
    .map(({ tool }) => lost(`the call of ${tool}, which had started`));
  // What the model answered follows from the prompt.
  if (uses.length && !says(first, 'user', PROMPT)) {
    faults.push(lost('the prompt of stored calls'));
  }
  return faults;
}

/** I1: results that the model has seen stay what they were. */
function lostResults({ stored, requests }) {
  const results = blocksIn(stored.at(-1), 'tool_result');
  const seen = requests.flatMap(({ body }) =>
    blocksIn(
      body.messages.map((message) => ({ message })),
      'tool_result',
    ),
  );
  return seen
    .filter(
      (result) =>
        !results.some(
          (stored) =>
            stored.tool_use_id === result.tool_use_id && resultText(stored) === resultText(result),
        ),
    )
    .map(({ tool_use_id: id }) => lost(`the result of ${id}, which the model had seen`));
}

/** I3: nothing happens twice. */
function repeated({ stored, executions, lives }) {
  const entries = stored.at(-1);
  const twice = {
    executions: executions.map(({ call }) => call),
    entries: entries.map(({ uuid }) => uuid).filter(Boolean),
    results: blocksIn(entries, 'tool_result').map((result) => result.tool_use_id),
    calls: blocksIn(entries, 'tool_use').map(({ id }) => id),
  };
  const faults = Object.entries(twice).flatMap(([what, ids]) =>
    repeatedIn(ids).map((id) => ({ kind: 'repeated', what: `${what}: ${id}` })),
  );
  // The model asks for tools once: whoever runs one later runs it again.
  const later = executions.filter(({ pid }) => pid !== lives[0].pid);
  return [
    ...faults,
    ...later.map(({ tool }) => ({ kind: 'repeated', what: `a later process ran ${tool}` })),
  ];
}

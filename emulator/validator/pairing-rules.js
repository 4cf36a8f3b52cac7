/**
 * @typedef {object} Round calls of one answer and the results that follow it at once
 * @property {{ id: string, path: string }[]} calls
 * @property {{ id: string, path: string }[]} results
 * @property {string} place where the results stand or should stand
 */

/**
 * The rules that tie tool calls to their results, the same in every protocol.
 *
 * @param {(request: object) => Round[]} roundsOf
 * @returns {Record<string, (request: object) => string | null>}
 */
export function pairingRules(roundsOf) {
  const each = (check) => (request) => firstOf(roundsOf(request), check);
  return {
    'results-known': each(resultsKnown),
    'results-once': each(resultsOnce),
    'calls-answered': each(callsAnswered),
    'results-in-order': each(resultsInOrder),
  };
}

/**
 * Checks that no id is used twice.
 *
 * @param {Iterable<{ id: string, path: string }>} calls
 * @returns {string | null}
 */
export function uniqueIds(calls) {
  const seen = new Map();
  for (const { id, path } of calls) {
    if (seen.has(id)) return `${path}.id "${id}" was used at ${seen.get(id)}`;
    seen.set(id, path);
  }
  return null;
}

function firstOf(rounds, check) {
  for (const round of rounds) {
    const message = check(round);
    if (message) return message;
  }
  return null;
}

function resultsKnown({ calls, results }) {
  const bad = results.find(({ id }) => !calls.some((call) => call.id === id));
  return bad ? `${bad.path} answers "${bad.id}", which is no call of the answer before it` : null;
}

function resultsOnce({ results }) {
  const ids = results.map(({ id }) => id);
  const bad = results.find(({ id }, at) => ids.indexOf(id) < at);
  return bad ? `${bad.path} answers "${bad.id}" a second time` : null;
}

function callsAnswered({ calls, results, place }) {
  const open = calls.find(({ id }) => !results.some((result) => result.id === id));
  return open ? `${open.path}: the call "${open.id}" has no result at ${place}` : null;
}

function resultsInOrder({ calls, results, place }) {
  if (calls.every(({ id }, at) => id === results[at].id)) return null;
  const list = (items) => items.map(({ id }) => id).join(', ');
  return `${place}: results ${list(results)} must follow the calls ${list(calls)}`;
}

import { KNOB_NAMES, checkKnobs } from '../stream/knobs.js';

const RULE_KEYS = ['when', 'times', 'reply', 'knobs', 'name'];
const TEXT_CONDITIONS = ['user', 'toolResult', 'system', 'model', 'tool', 'offersTool'];
const CONDITION_KEYS = [...TEXT_CONDITIONS, 'hasToolResult', 'turn'];
/** Conditions that compare names: a string must be equal, not contained. */
const EXACT = new Set(['model', 'tool', 'offersTool']);

/**
 * Checks a list of rules and prepares it for matching.
 *
 * @param {object[]} rules
 * @returns {{ rule: object, matches: (request: object, facts: import('./facts.js').Facts) => boolean, uses: number }[]}
 * @throws {TypeError} that names the first bad place, e.g. `rules.2.when.usr`
 */
export function compileRules(rules) {
  if (!Array.isArray(rules)) throw new TypeError('rules: must be an array of rules');
  return rules.map((rule, index) => {
    const path = `rules.${index}`;
    checkRule(rule, path);
    return { rule, matches: compileCondition(rule.when, `${path}.when`), uses: 0 };
  });
}

function checkRule(rule, path) {
  checkKeys(rule, RULE_KEYS, path);
  if (rule.reply === undefined && rule.knobs === undefined) {
    throw new TypeError(`${path}: needs a "reply" (or at least "knobs")`);
  }
  if (rule.times !== undefined && !(Number.isInteger(rule.times) && rule.times >= 0)) {
    throw new TypeError(`${path}.times: must be an integer >= 0`);
  }
  if (rule.knobs !== undefined) checkKnobs(rule.knobs, `${path}.knobs`);
}

function compileCondition(when, path) {
  if (when === undefined) return () => true;
  if (typeof when === 'function') return (request, facts) => Boolean(when(request, facts));
  checkKeys(when, CONDITION_KEYS, path);
  checkTypes(when, path);
  const tests = Object.entries(when).map(([key, wanted]) =>
    TEXT_CONDITIONS.includes(key)
      ? textTest(key, wanted, `${path}.${key}`)
      : (facts) => facts[key] === wanted,
  );
  return (_request, facts) => tests.every((test) => test(facts));
}

function checkTypes({ hasToolResult, turn }, path) {
  if (hasToolResult !== undefined && typeof hasToolResult !== 'boolean') {
    throw new TypeError(`${path}.hasToolResult: must be true or false`);
  }
  if (turn !== undefined && !(Number.isInteger(turn) && turn >= 0)) {
    throw new TypeError(`${path}.turn: must be an integer >= 0`);
  }
}

function textTest(key, wanted, path) {
  const test = textMatcher(wanted, EXACT.has(key), path);
  if (key === 'tool') return (facts) => facts.tools.some(test);
  if (key === 'offersTool') return (facts) => facts.offered.some(test);
  if (key === 'toolResult') return (facts) => facts.hasToolResult && test(facts.toolResult);
  return (facts) => test(facts[key]);
}

function textMatcher(wanted, exact, path) {
  if (typeof wanted === 'string') {
    return exact ? (text) => text === wanted : (text) => text.includes(wanted);
  }
  const pattern = wanted instanceof RegExp ? wanted : parsePattern(wanted, path);
  // A copy without `g` and `y`: these make RegExp.test depend on the previous call.
  const stateless = new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, ''));
  return (text) => stateless.test(text);
}

function parsePattern(wanted, path) {
  if (typeof wanted?.regex !== 'string') {
    throw new TypeError(`${path}: must be a string, a RegExp or { "regex": "…", "flags": "…" }`);
  }
  try {
    return new RegExp(wanted.regex, wanted.flags);
  } catch (error) {
    throw new TypeError(`${path}: ${error.message}`, { cause: error });
  }
}

function checkKeys(value, allowed, path) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new TypeError(`${path}: must be an object`);
  }
  for (const key of Object.keys(value)) {
    if (allowed.includes(key)) continue;
    const hint = KNOB_NAMES.includes(key) ? ' (a knob: put it into "knobs")' : '';
    throw new TypeError(`${path}.${key}: unknown key${hint}; known: ${allowed.join(', ')}`);
  }
}

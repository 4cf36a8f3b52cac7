/**
 * Prepares `config.hooks` for the core.
 *
 * @module
 */
import { isPlain, read, unknownKeys } from './plain.js';

const HOOKS = [
  'onSessionStart',
  'onSessionEnd',
  'onUserMessage',
  'onToolStart',
  'onToolEnd',
  'onAgentMessage',
];
/** Hooks whose context has the signal of the call. */
const WITH_SIGNAL = new Set(['onToolStart', 'onToolEnd']);

/**
 * @param {unknown} hooks an object with `on…` members, or an instance of a class with such methods
 * @returns {unknown} functions that take one argument; anything of a wrong shape is left for the
 *   core to refuse
 */
export function prepareHooks(hooks) {
  if (typeof hooks !== 'object' || hooks === null || Array.isArray(hooks)) return hooks;
  const fields = isPlain(hooks) ? unknownKeys(hooks, HOOKS) : {};
  for (const name of HOOKS) {
    const hook = read(hooks, name, 'config.hooks');
    fields[name] = typeof hook === 'function' ? callable(hooks, hook, WITH_SIGNAL.has(name)) : hook;
  }
  return fields;
}

function callable(hooks, hook, withSignal) {
  return (context, signal) => hook.call(hooks, withSignal ? { ...context, signal } : context);
}

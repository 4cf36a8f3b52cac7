/**
 * Prepares a session store of the program for the core: functions that take one argument and give JSON.
 *
 * @module
 */
import { InvalidConfigError } from '../errors.js';
import { read } from '../plain.js';
import { indexOf } from './cloudbase-session-store.js';
import { ownMethods } from './driver.js';
import { WholeTranscripts } from './whole.js';

const METHODS = [
  'append',
  'load',
  'listSessions',
  'listSessionSummaries',
  'delete',
  'listSubkeys',
  'registerSession',
  'getSession',
];
const WHOLE_METHODS = ['save', 'load', 'list', 'delete'];
const INDEX = ['appendSessionMessage', 'querySessionMessages', 'deleteSessionMessages'];

/** How the methods take the one argument that the core sends. */
const CALLS = {
  append:
    (append) =>
    ({ key, entries }) =>
      append(key, entries),
  load:
    (load) =>
    ({ key }) =>
      load(key),
  listSessions:
    (list) =>
    ({ projectKey }) =>
      list(projectKey),
  listSessionSummaries:
    (list) =>
    ({ projectKey }) =>
      list(projectKey),
  delete:
    (remove) =>
    ({ key }) =>
      remove(key),
  listSubkeys:
    (list) =>
    ({ key }) =>
      list(key),
  registerSession: (register) => (session) => register(session),
  getSession:
    (get) =>
    ({ projectKey, sessionId }) =>
      get(projectKey, sessionId),
  querySessionMessages:
    (query) =>
    ({ projectKey, conversationId, options }) =>
      query(projectKey, conversationId, options),
  deleteSessionMessages:
    (remove) =>
    ({ key }) =>
      remove(key),
};

/**
 * @param {unknown} store `session.store`: of the kind of the Claude Agent SDK, or one that saves whole
 *   transcripts; an instance of a class keeps its `this`
 * @param {string} path name of the store in messages
 * @returns {unknown} the functions that the store has; anything of a wrong shape is left for the core
 *   to refuse
 */
export function prepareStore(store, path) {
  if (typeof store !== 'object' || store === null || Array.isArray(store)) return store;
  if (typeof read(store, 'save', path) === 'function') return prepareWhole(store, path);
  const index = indexMethods(store, path);
  const methods = { ...ownMethods(store, METHODS, path), ...index };
  // Drivers with an index put an entry in the place of the one with its uuid.
  return { ...callable(methods), replaces: index !== undefined };
}

function prepareWhole(store, path) {
  const methods = ownMethods(store, WHOLE_METHODS, path);
  if (!methods.load) return { save: methods.save };
  return { ...callable(new WholeTranscripts(methods).methods()), replaces: true };
}

function callable(methods) {
  const pairs = Object.entries(CALLS).filter(([name]) => methods[name] !== undefined);
  return Object.fromEntries(pairs.map(([name, call]) => [name, call(methods[name])]));
}

/** The index that the driver behind a store keeps; nothing when it keeps none. */
function indexMethods(store, path) {
  if (typeof read(store, 'getDriver', path) !== 'function') return undefined;
  const own = indexOf(store);
  if (own) return own;
  const driver = driverOf(store, path);
  if (typeof driver !== 'object' || driver === null) return undefined;
  const methods = ownMethods(driver, INDEX, `${path}.getDriver()`);
  const { querySessionMessages, deleteSessionMessages } = methods;
  return INDEX.every((name) => methods[name])
    ? { querySessionMessages, deleteSessionMessages }
    : undefined;
}

function driverOf(store, path) {
  try {
    return store.getDriver();
  } catch (error) {
    throw new InvalidConfigError(`${path}.getDriver() threw`, error);
  }
}

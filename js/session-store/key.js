/**
 * Keys of transcripts.
 *
 * @module
 */
import { InvalidConfigError } from '../errors.js';

/** Bytes of the longest session id. */
const LONGEST_ID = 512;
const ID = /^\P{Cc}+$/u;

/** @typedef {{ projectKey: string, sessionId: string, subpath?: string }} SessionKey */

/**
 * A key as one text: its parts joined by `|`. Inside a part `%` and `|` are escaped, so that two keys
 * never have the same text.
 *
 * @param {SessionKey} key
 * @returns {string}
 */
export function encodeSessionKey(key) {
  const { projectKey, sessionId, subpath } = readKey(key, 'encodeSessionKey');
  return [projectKey, sessionId, ...(subpath ? [subpath] : [])].map(escapePart).join('|');
}

function escapePart(part) {
  return part.replace(/[%|]/g, encodeURIComponent);
}

/**
 * Checks a key that a program gave.
 *
 * @param {unknown} key
 * @param {string} call name of the call, for the message
 * @returns {SessionKey} a copy; without `subpath` for the main transcript
 * @throws {InvalidConfigError}
 */
export function readKey(key, call) {
  if (typeof key !== 'object' || key === null) {
    throw new InvalidConfigError(`${call}: the key must be an object {projectKey, sessionId}`);
  }
  const { projectKey, sessionId, subpath } = key;
  requireText(projectKey, 'projectKey', call);
  requireText(sessionId, 'sessionId', call);
  if (!ID.test(sessionId) || Buffer.byteLength(sessionId) > LONGEST_ID) {
    throw new InvalidConfigError(
      `${call}: sessionId must have 1 to ${LONGEST_ID} bytes and no control characters`,
    );
  }
  if (subpath === undefined || subpath === null) return { projectKey, sessionId };
  requireText(subpath, 'subpath', call);
  // Some callers write the main transcript so.
  return subpath === '' ? { projectKey, sessionId } : { projectKey, sessionId, subpath };
}

/**
 * @param {unknown} value
 * @param {string} name
 * @param {string} call
 * @throws {InvalidConfigError} when it is no string
 */
export function requireText(value, name, call) {
  if (typeof value !== 'string') {
    throw new InvalidConfigError(`${call}: ${name} must be a string`);
  }
}

/**
 * Checks entries that a program gave.
 *
 * @param {unknown} entries
 * @param {string} call
 * @returns {object[]}
 * @throws {InvalidConfigError}
 */
export function readEntries(entries, call) {
  if (!Array.isArray(entries)) {
    throw new InvalidConfigError(`${call}: the entries must be an array`);
  }
  const at = entries.findIndex((entry) => !isEntry(entry));
  if (at >= 0) throw new InvalidConfigError(`${call}: entries[${at}] must be an object`);
  return entries;
}

/** Whether a value can be an entry of a transcript. */
export function isEntry(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

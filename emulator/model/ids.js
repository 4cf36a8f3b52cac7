import { randomBytes } from 'node:crypto';

/**
 * Makes an id such as `msg_3f…`. Random instead of counted: a stored conversation may outlive this
 * emulator, and a second emulator that counted from one again would hand out the same tool ids.
 *
 * @param {string} prefix
 * @returns {string}
 */
export function newId(prefix) {
  return `${prefix}_${randomBytes(12).toString('hex')}`;
}

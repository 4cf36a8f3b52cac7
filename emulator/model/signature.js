import { createHash } from 'node:crypto';

const PREFIX = 'oaksig_';

/**
 * Signs thinking text. The signature is a plain hash of the text, so a validator can tell from the
 * block alone whether the text was changed, also in another process.
 *
 * @param {string} thinking
 * @returns {string}
 */
export function signThinking(thinking) {
  return PREFIX + createHash('sha256').update(thinking, 'utf8').digest('base64url');
}

/**
 * Whether a signature has the form that {@link signThinking} makes.
 *
 * @param {string} signature
 * @returns {boolean}
 */
export function isOwnSignature(signature) {
  return signature.startsWith(PREFIX);
}

import { firstBroken } from '../run-rules.js';
import { chatCallRules } from './call-rules.js';
import { chatMessageRules } from './message-rules.js';
import { chatRequestRules } from './request-rules.js';
import { chatToolRules } from './tool-rules.js';

/** All rules in the order in which they are checked. */
const RULES = {
  ...chatRequestRules,
  ...chatMessageRules,
  ...chatToolRules,
  ...chatCallRules,
};

/** Names of the rules of {@link validateChatRequest}, in order of checking. */
export const chatValidatorRules = Object.freeze(Object.keys(RULES));

/**
 * Checks the body of a chat completions request as strictly as the strictest gateways.
 *
 * @param {unknown} body decoded JSON
 * @returns {{ rule: string, message: string } | null} the first broken rule
 */
export function validateChatRequest(body) {
  return firstBroken(RULES, body);
}

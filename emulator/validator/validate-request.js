import { cacheRules } from './cache-rules.js';
import { imageRules } from './image-rules.js';
import { messageRules } from './message-rules.js';
import { requestRules } from './request-rules.js';
import { firstBroken } from './run-rules.js';
import { thinkingRules } from './thinking-rules.js';
import { toolPairRules } from './tool-pair-rules.js';
import { toolRules } from './tool-rules.js';

/** All rules in the order in which they are checked. */
const RULES = {
  ...requestRules,
  ...messageRules,
  ...toolRules,
  ...toolPairRules,
  ...thinkingRules,
  ...cacheRules,
  ...imageRules,
};

/** Names of the rules of {@link validateRequest}, in order of checking. */
export const validatorRules = Object.freeze(Object.keys(RULES));

/**
 * Checks the body of a Messages request as strictly as a real gateway, and in some points more so.
 *
 * @param {unknown} body decoded JSON
 * @param {import('../model/memory.js').ModelMemory} [memory] answers given so far; without it,
 *   rules that need them are skipped
 * @returns {{ rule: string, message: string } | null} the first broken rule
 */
export function validateRequest(body, memory) {
  return firstBroken(RULES, body, memory);
}

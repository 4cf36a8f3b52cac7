const TELLS = [
  /\bmy favou?rite (?:dish|food) is\s+([^.,;!?]{1,60})/iu,
  /\bi (?:like|love) (?:to eat|eating)\s+([^.,;!?]{1,60})/iu,
  /我(?:最)?(?:喜欢|爱)吃(?:的(?:菜|食物)?是)?\s*([^\s，。,.!！?？、；;]{1,20})/u,
];
const ASKS =
  /what(?:'s|’s|\s+is)\s+my\s+favou?rite\s+(?:dish|food)|what do i (?:like|love) to eat|(?:喜欢|爱)吃(?:的)?(?:是)?什么|favou?rite (?:dish|food)\s*\?/iu;

/**
 * Whether the user asks what they like to eat.
 *
 * @param {string} userText
 * @returns {boolean}
 */
export function asksLike(userText) {
  return ASKS.test(userText);
}

/**
 * Reads a dish that the user says they like.
 *
 * @param {string} userText
 * @returns {string | null}
 */
export function readLike(userText) {
  if (asksLike(userText)) return null;
  for (const pattern of TELLS) {
    const dish = pattern.exec(userText)?.[1]?.trim();
    if (dish) return dish;
  }
  return null;
}

/**
 * The dish that was told last.
 *
 * @param {string[]} texts user texts of the conversation, oldest first
 * @returns {string | null}
 */
export function rememberedLike(texts) {
  return texts.map(readLike).findLast((dish) => dish !== null) ?? null;
}

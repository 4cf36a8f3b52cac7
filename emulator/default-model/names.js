const TELLS = [
  /\bmy name is\s+(\p{L}[\p{L}'-]*)/iu,
  /\bcall me\s+(\p{L}[\p{L}'-]*)/iu,
  /(?:我叫|我的名字是|我的名字叫)\s*([\p{Script=Han}\p{L}]{1,20}?)(?=[\s，。,.!！?？、]|$)/u,
];
const ASKS = /what(?:'s|’s|\s+is)\s+my\s+name|who am i|我叫什么|我的名字(?:是|叫)什么|我是谁/iu;

/**
 * Whether the user asks for their own name.
 *
 * @param {string} userText
 * @returns {boolean}
 */
export function asksName(userText) {
  return ASKS.test(userText);
}

/**
 * Reads a name that the user tells.
 *
 * @param {string} userText
 * @returns {string | null}
 */
export function readName(userText) {
  for (const pattern of TELLS) {
    const name = pattern.exec(userText)?.[1];
    if (name && !name.startsWith('什么')) return name;
  }
  return null;
}

/**
 * The name that was told last.
 *
 * @param {string[]} texts user texts of the conversation, oldest first
 * @returns {string | null}
 */
export function rememberedName(texts) {
  return texts.map(readName).findLast((name) => name !== null) ?? null;
}

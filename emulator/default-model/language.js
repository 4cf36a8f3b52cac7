/**
 * Picks the Chinese or the English wording, whichever the user writes.
 *
 * @param {string} userText
 * @param {string} english
 * @param {string} chinese
 * @returns {string}
 */
export function say(userText, english, chinese) {
  return /\p{Script=Han}/u.test(userText) ? chinese : english;
}

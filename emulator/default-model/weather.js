const ASKS_WEATHER = /\bweather\b|\bforecast\b|天气/iu;
const ENGLISH_CITY =
  /\b(?:weather|forecast)\b.*?\b(?:in|for|at)\s+(\p{L}[\p{L}\s'.-]*?)(?=\s*(?:[?!,;:，。？！]|\.(?:\s|$)|$)|\s+(?:today|tomorrow|now|right|like|this|please|and)\b)/isu;
const CITY_FIRST =
  /(?:^|[\s"'])(\p{Lu}[\p{L}'-]*(?:\s+\p{Lu}[\p{L}'-]*)*)(?:'s)?\s+(?:weather|forecast)\b/u;
const CHINESE_CITY = /(\p{Script=Han}{2,})天气/u;
/** Words around the city that are not part of its name. */
const BEFORE =
  /^(?:请问|请|麻烦|帮我|帮忙|给我|告诉我|我想知道|我想|查询|查一下|查查|查|看一下|看看|一下|你好|今天|明天|后天|现在|你|用中文|知道)/u;
const AFTER = /(?:今天|明天|后天|现在|今日|明日|的|市)$/u;

/**
 * Whether the user asks about the weather.
 *
 * @param {string} userText
 * @returns {boolean}
 */
export function asksWeather(userText) {
  return ASKS_WEATHER.test(userText);
}

/**
 * Finds the city in a question about the weather.
 *
 * @param {string} userText
 * @returns {string | null}
 */
export function readCity(userText) {
  const chinese = CHINESE_CITY.exec(userText);
  if (chinese) return strip(strip(chinese[1], BEFORE), AFTER) || null;
  const english = ENGLISH_CITY.exec(userText) ?? CITY_FIRST.exec(userText);
  return english ? english[1].trim() : null;
}

/**
 * The input for a weather tool: the city under the name that the tool's schema uses.
 *
 * @param {object | undefined} tool as offered in the request
 * @param {string} city
 * @returns {object}
 */
export function weatherInput(tool, city) {
  const names = Object.keys(tool?.input_schema?.properties ?? {});
  const name = ['city', 'location', 'place'].find((key) => names.includes(key)) ?? names[0];
  return { [name ?? 'city']: city };
}

function strip(text, pattern) {
  let rest = text;
  while (pattern.test(rest)) rest = rest.replace(pattern, '');
  return rest;
}

/**
 * The crash points of the core, read from its source: a new one cannot be forgotten.
 *
 * @module
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { DATABASES } from './databases.js';
import { SCENARIOS } from './scenarios.js';

const SOURCE = new URL('../src/', import.meta.url).pathname;
/** Where points begin that no scenario passes: `__test__/client-tools-crash.test.js` kills at each. */
export const ANSWERS = 'answer';
const POINT = /crash_point!\(\s*"([^"]+)"/g;

/**
 * Points that a scenario passes with a database. The first word of a name says where the point is;
 * what belongs to another database or another scenario is left out, everything else is in.
 *
 * @param {string} scenario
 * @param {string} database
 * @returns {string[]}
 */
export function pointsOf(scenario, database) {
  const others = [...Object.keys(DATABASES), ...Object.keys(SCENARIOS), ANSWERS];
  return allPoints().filter((name) => {
    const [place] = name.split('.', 1);
    return place === scenario || place === database || !others.includes(place);
  });
}

/** Every point that is compiled in, sorted. */
export function allPoints() {
  const files = readdirSync(SOURCE, { recursive: true }).filter((name) => name.endsWith('.rs'));
  const names = files.flatMap((name) => {
    const text = readFileSync(join(SOURCE, name), 'utf8');
    return [...text.matchAll(POINT)].map(([, point]) => point);
  });
  return [...new Set(names)].sort();
}

/**
 * Recorded streams: `goldens/<format>.json` holds what each turn of `format-turns.js` shows in a
 * format. `UPDATE_GOLDENS=1` writes them anew.
 *
 * @module
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { oracle } from '../../scripts/oracle.js';

/** Whether the files are written instead of read. */
export const UPDATES = process.env.UPDATE_GOLDENS === '1';

const fileOf = (format) => new URL(`../goldens/${format}.json`, import.meta.url);

/** The recorded streams of a format, by turn. */
export function readGoldens(format) {
  return JSON.parse(readFileSync(fileOf(format), 'utf8'));
}

/** Records the streams of a format, by turn. */
export async function writeGoldens(format, turns) {
  const prettier = createRequire(join(oracle('tooling'), 'package.json'))('prettier');
  const options = { parser: 'json', printWidth: 100 };
  writeFileSync(fileOf(format), await prettier.format(JSON.stringify(turns), options));
}

/**
 * Elements without what differs from run to run: times, random ids, and how much of a growing input
 * was told on the way.
 *
 * @param {object[]} elements
 * @returns {object[]}
 */
export function normalised(elements) {
  const kept = elements.filter((element, at) => !isOutgrown(element, elements.slice(at + 1)));
  return kept.map((element) => JSON.parse(JSON.stringify(plain(element), steady)));
}

/** Whether a longer part of the same input was told later. */
function isOutgrown(element, later) {
  const id = growing(element);
  return id !== undefined && later.some((other) => growing(other) === id);
}

function growing(element) {
  const { sessionUpdate, status, toolCallId } = element.params?.update ?? element;
  const grows = sessionUpdate === 'tool_call_update' && status === 'in_progress';
  return grows ? toolCallId : undefined;
}

/** An error object in words: JSON has none. */
function plain(element) {
  if (!(element.error instanceof Error)) return element;
  const { name, message } = element.error;
  return { ...element, error: { name, message, ...element.error } };
}

function steady(key, value) {
  if (key === 'timestamp' && typeof value === 'number') return '<time>';
  if (key === 'requestId' || key === 'assistantMessageId') return `<${key}>`;
  return value;
}

/**
 * Cache of the scripts: downloads and builds that the clones on a machine share.
 *
 * @module
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Folder for everything that is expensive to make; outside the checkout, so that clones share it. */
export const cacheDir = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'open-agent-kernel',
);

/**
 * Returns a folder of the cache and fills it first when it is not there yet.
 *
 * A folder is filled under another name and renamed when complete: an interrupted fill leaves
 * nothing that looks finished, and of two processes the first to rename wins.
 *
 * @param {string} name path below the cache
 * @param {(folder: string) => void} fill throws when it fails
 * @returns {string}
 */
export function cached(name, fill) {
  const target = join(cacheDir, name);
  if (existsSync(target)) return target;
  const draft = `${target}.${randomUUID()}.tmp`;
  mkdirSync(draft, { recursive: true });
  try {
    fill(draft);
    moveInto(draft, target);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return target;
}

function moveInto(draft, target) {
  try {
    renameSync(draft, target);
  } catch (error) {
    if (!existsSync(target)) throw error;
  }
}

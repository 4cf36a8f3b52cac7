/**
 * The addon that is measured.
 *
 * @module
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { addonName } from '../scripts/build.js';
import { targetDir } from '../scripts/cargo.js';
import { root } from '../scripts/run.js';

/** Path of the addon in the checkout. */
export const addonFile = join(root, addonName());

/** Names of the library that cargo builds, on one platform or another. */
const LIBRARIES = [
  'libopen_agent_kernel.so',
  'libopen_agent_kernel.dylib',
  'open_agent_kernel.dll',
];

/** @returns {boolean} whether the addon is, byte for byte, what cargo built for release */
export function isRelease() {
  if (!existsSync(addonFile)) return false;
  const addon = readFileSync(addonFile);
  return LIBRARIES.map((name) => join(targetDir, 'release', name)).some(
    (library) => existsSync(library) && readFileSync(library).equals(addon),
  );
}

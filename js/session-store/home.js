/**
 * The home directory of the user.
 *
 * @module
 */
import { userInfo } from 'node:os';
import { isAbsolute } from 'node:path';

/** @returns {string | undefined} `HOME`, else what the system knows of the user */
export function homeFolder() {
  const { HOME: home } = process.env;
  if (home && isAbsolute(home)) return home;
  try {
    // A folder that anybody may create is no home.
    return userInfo().homedir || undefined;
  } catch {
    return undefined;
  }
}

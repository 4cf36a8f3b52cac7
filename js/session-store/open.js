/**
 * Session stores of the kernel for programs.
 *
 * @module
 */
import { InvalidConfigError, KernelError, typed } from '../errors.js';
import { toJson } from '../json.js';
import { native } from '../native.js';
import { brand } from './brand.js';
import { homeFolder } from './home.js';
import { NativeSessionStore } from './native-store.js';

const SETTINGS = ['database', 'path', 'url', 'tablePrefix', 'durability'];

/**
 * Opens a store; its driver does no I/O before its first call.
 *
 * @param {{ database: string, path?: string, url?: string, tablePrefix?: string, durability?: string }}
 *   settings as those of `config.session`; others have no effect
 * @returns {NativeSessionStore}
 * @throws {InvalidConfigError}
 */
export function openSessionStore(settings) {
  const text = typed('openSessionStore: the settings', () => {
    if (typeof settings !== 'object' || settings === null || Array.isArray(settings)) {
      throw new InvalidConfigError('openSessionStore: the settings must be an object');
    }
    return toJson(Object.fromEntries(SETTINGS.map((name) => [name, settings[name] ?? null])));
  });
  try {
    const driver = native.openStore(text, homeFolder());
    return brand(new NativeSessionStore(driver), driver);
  } catch (error) {
    if (error instanceof KernelError) Error.captureStackTrace(error, openSessionStore);
    throw error;
  }
}

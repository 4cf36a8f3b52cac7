/**
 * Decides whether paths and commands are allowed, before anything is done.
 *
 * @module
 */
import { InvalidConfigError, KernelError, SandboxDeniedError } from '../errors.js';
import { toJson } from '../json.js';
import { native } from '../native.js';
import { toPlainJson } from '../plain.js';
import { homeFolder } from '../session-store/home.js';

/** Variables of the environment that paths in commands may use. */
const VARIABLES = ['HOME', 'PWD', 'TMPDIR', 'USER', 'LOGNAME'];

/** Rules for paths and commands; every method is static. */
export class SandboxChecker {
  /**
   * @param {string} path
   * @param {'read' | 'write'} operation
   * @param {object} settings
   * @param {object} [env]
   * @returns {boolean}
   */
  static isPathAllowed(path, operation, settings, env) {
    return allowed(() => SandboxChecker.checkPath(path, operation, settings, env));
  }

  /**
   * @param {string} path
   * @param {'read' | 'write'} operation
   * @param {object} settings
   * @param {object} [env]
   * @throws {SandboxDeniedError}
   */
  static checkPath(path, operation, settings, env) {
    requireText(path, 'path');
    requireText(operation, 'operation');
    call(SandboxChecker.checkPath, settings, env, (checker) => checker.checkPath(path, operation));
  }

  /**
   * @param {string} command
   * @param {object} settings
   * @param {object} [env]
   * @returns {boolean}
   */
  static isCommandAllowed(command, settings, env) {
    return allowed(() => SandboxChecker.checkCommand(command, settings, env));
  }

  /**
   * @param {string} command
   * @param {object} settings
   * @param {object} [env]
   * @throws {SandboxDeniedError}
   */
  static checkCommand(command, settings, env) {
    requireText(command, 'command');
    call(SandboxChecker.checkCommand, settings, env, (checker) => checker.checkCommand(command));
  }

  /**
   * @param {string} command
   * @param {object} settings
   * @param {object} [env]
   * @returns {object} the verdict with the commands and paths that led to it
   */
  static explainCommand(command, settings, env) {
    requireText(command, 'command');
    const explain = (checker) => JSON.parse(checker.explainCommand(command));
    return call(SandboxChecker.explainCommand, settings, env, explain);
  }
}

/** Finds where a path leads. */
export class SandboxPathNormalizer {
  /**
   * @param {string} path
   * @param {object} [env]
   * @returns {string} absolute, links resolved
   * @throws {SandboxDeniedError} where it leads cannot be said
   */
  static normalize(path, env) {
    requireText(path, 'path');
    const normalize = (checker) => checker.normalizePath(path);
    return call(SandboxPathNormalizer.normalize, {}, env, normalize);
  }
}

/** Runs a check; an error of the core gets the stack of the caller. */
function call(method, settings, env, check) {
  try {
    return check(native.openChecker(plain(settings, 'settings'), surroundings(env)));
  } catch (error) {
    if (error instanceof KernelError) Error.captureStackTrace(error, method);
    throw error;
  }
}

function allowed(check) {
  try {
    check();
    return true;
  } catch (error) {
    if (error instanceof SandboxDeniedError) return false;
    throw error;
  }
}

function plain(value, name) {
  return toPlainJson(value, name, () => {
    throw new InvalidConfigError(`${name} must hold no functions`);
  });
}

function surroundings(env) {
  const given = env === undefined || env === null ? {} : JSON.parse(plain(env, 'env'));
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new InvalidConfigError('env must be an object {cwd?, home?, platform?, variables?}');
  }
  const names = VARIABLES.filter((name) => process.env[name] !== undefined);
  const defaults = {
    cwd: given.cwd === undefined ? process.cwd() : null,
    home: homeFolder() ?? '',
    platform: process.platform,
    variables: Object.fromEntries(names.map((name) => [name, process.env[name]])),
  };
  // `PWD` of the process says nothing about another folder.
  if (given.cwd !== undefined) delete defaults.variables.PWD;
  return toJson({ ...defaults, ...given });
}

function requireText(value, name) {
  if (typeof value !== 'string') throw new InvalidConfigError(`${name} must be a string`);
}

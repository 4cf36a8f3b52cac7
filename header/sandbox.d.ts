/** Rules for paths and commands. Empty lists of paths mean no limit of that kind. */
export interface SandboxSettings {
  /** Folders that may be read; default empty: every path may be read. */
  allowedReadPaths?: string[];
  /** Folders that may be written; default empty: every path may be written. */
  allowedWritePaths?: string[];
  /** Folders that may never be touched; wins over both lists. */
  deniedPaths?: string[];
  /** Commands that may never run, such as `rm` or `git push`; not used with `allowedCommands`. */
  deniedCommands?: string[];
  /** The only commands that may run; `[]` allows none. Default null: no such limit. */
  allowedCommands?: string[] | null;
  /** Folders of the programs that `allowedCommands` names; default the usual program folders. */
  trustedExecDirs?: string[];
  /** Default false. */
  allowNestedSandbox?: boolean;
  /** Default false. */
  autoAllowBashIfSandboxed?: boolean;
  /** Default false. */
  allowUnsandboxedCommands?: boolean;
  /** Default false. */
  enableWeakerNestedSandbox?: boolean;
  /** Refusals that are not reported: texts by category (`file`, `network`, `command`). */
  ignoreViolations?: Record<string, string[]>;
  network?: SandboxNetworkSettings;
  ripgrep?: { command: string; args?: string[] };
  /** Enforcement by the operating system; default `auto`. */
  enforcement?: 'auto' | 'required' | 'off';
}

/** Network of commands in a sandbox. */
export interface SandboxNetworkSettings {
  allowedDomains?: string[];
  allowManagedDomainsOnly?: boolean;
  allowLocalBinding?: boolean;
  /** True for every socket, or a list of paths. */
  allowUnixSockets?: boolean | string[];
  allowAllUnixSockets?: boolean;
  httpProxyPort?: number;
  socksProxyPort?: number;
}

/** Where a command would run; what is left out is taken from the process. */
export interface SandboxCheckEnv {
  /** Absolute folder that relative paths start from. */
  cwd?: string;
  /** Folder that `~` stands for. */
  home?: string;
  /** As `process.platform`; macOS and Windows compare names without case. */
  platform?: string;
  /** Values of `HOME`, `PWD`, `TMPDIR`, `USER` in commands; others have no effect. */
  variables?: Record<string, string>;
}

/** What `SandboxChecker.explainCommand` tells. */
export interface SandboxExplanation {
  verdict: 'allow' | 'deny';
  /** Kind of the refusal, such as `command_denied`, `unparseable`, `dynamic_command`. */
  code?: string;
  reason?: string;
  /** Every command that would run; `via` says how it is reached, such as `sudo` or `$(…)`. */
  commands: { argv: string[]; via: string[] }[];
  /** Paths that the command names. */
  paths: { path: string; operation: 'read' | 'write' }[];
}

/** Decides whether paths and commands are allowed, before anything is done. */
export declare class SandboxChecker {
  /** @throws {InvalidConfigError} a setting has a wrong type or an unknown name */
  static isPathAllowed(
    path: string,
    operation: 'read' | 'write',
    settings: SandboxSettings,
    env?: SandboxCheckEnv,
  ): boolean;
  /** @throws {SandboxDeniedError} */
  static checkPath(
    path: string,
    operation: 'read' | 'write',
    settings: SandboxSettings,
    env?: SandboxCheckEnv,
  ): void;
  /** The same verdict as `checkCommand`. What is not understood is refused. */
  static isCommandAllowed(
    command: string,
    settings: SandboxSettings,
    env?: SandboxCheckEnv,
  ): boolean;
  /** @throws {SandboxDeniedError} */
  static checkCommand(command: string, settings: SandboxSettings, env?: SandboxCheckEnv): void;
  /** The verdict with everything that led to it; never throws for a refusal. */
  static explainCommand(
    command: string,
    settings: SandboxSettings,
    env?: SandboxCheckEnv,
  ): SandboxExplanation;
}

/** Finds where a path leads. */
export declare class SandboxPathNormalizer {
  /**
   * The absolute path, links resolved; components that do not exist are kept.
   *
   * @throws {SandboxDeniedError} where it leads cannot be said
   */
  static normalize(path: string, env?: SandboxCheckEnv): string;
}

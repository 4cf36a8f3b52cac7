/** A tool that runs in this process, or that the reader of the stream answers. */
export interface ToolDefinition<TInput = Record<string, unknown>, TOutput = unknown> {
  /** 1 to 64 letters, digits, `_` and `-`; not beginning with `mcp__`. */
  name: string;
  /** Tells the model what the tool does and when to use it. */
  description: string;
  /**
   * Schema of the input, which is an object: a schema or a raw shape of zod 3 or 4, a Standard JSON
   * Schema of any library, or a JSON Schema whose references stay inside it.
   */
  parameters: ToolParameters<TInput>;
  /**
   * Runs a call. The input was checked. Strings are shown to the model as they are, other values as
   * `JSON.stringify` writes them, `undefined` and `null` as "(no output)"; a thrown error is told to
   * the model. Beyond 100,000 characters the middle is left out. Without it a call ends the run until
   * `respondToolUse` answers it.
   */
  execute?(input: TInput, ctx: ToolContext): TOutput | Promise<TOutput>;
  /** Whether `respondToolUse` answers the calls, also when there is an `execute`. Default: false. */
  clientSide?: boolean;
  /** Whether calls change nothing: those run in parallel. Default: false. */
  readOnly?: boolean;
  /** Whether running a call again is harmless. Default: false. */
  idempotent?: boolean;
  /** Milliseconds that a call may take; 0: no limit. Default: `limits.toolTimeoutMs`. */
  timeoutMs?: number;
}

/** A tool whose input is known by its schema. */
export type ToolWith<P> = Omit<ToolDefinition<any, any>, 'parameters' | 'execute'> & {
  parameters: P & object;
  execute?(input: InputOf<P>, ctx: ToolContext): unknown;
};

/** What `execute` gets for a schema; a JSON Schema says nothing to TypeScript. */
export type InputOf<P> =
  P extends ZodSchema<infer T>
    ? T
    : P extends Zod3Schema<infer T>
      ? T
      : P extends StandardSchema<infer T>
        ? T
        : P extends Record<string, ZodSchema<any> | Zod3Schema<any>>
          ? { [K in keyof P]: InputOf<P[K]> }
          : any;

/** How the input of a tool can be described; `T` is what `execute` gets. */
export type ToolParameters<T> =
  ZodSchema<T> | Zod3Schema<T> | StandardSchema<T> | ZodShape<T> | JsonSchema;

/** A schema of zod 4 or zod/mini. */
export interface ZodSchema<T> {
  readonly _zod: { readonly output: T };
  readonly '~standard': object;
}

/** A schema of zod 3. */
export interface Zod3Schema<T> {
  readonly _def: object;
  readonly _output: T;
  safeParseAsync(data: unknown): Promise<unknown>;
}

/** Zod types by the names of the properties, all of the same zod. */
export type ZodShape<T> = { readonly [K in keyof T]: ZodSchema<T[K]> | Zod3Schema<T[K]> };

/** A Standard JSON Schema, of arktype for one; valibot has `toStandardJsonSchema` for it. */
export interface StandardSchema<T> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly output: T } | undefined;
    readonly jsonSchema: {
      readonly input: (options: {
        target: 'draft-07' | 'draft-2020-12';
      }) => Record<string, unknown>;
    };
  };
}

/** A JSON Schema, which says nothing to TypeScript: the input is what `execute` takes it for. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** What a tool call may know and watch. */
export interface ToolContext {
  toolUseId: string;
  conversationId: string;
  userId: string;
  envId: string;
  /** The same for every attempt at this call. */
  idempotencyKey: string;
  /** Aborts when the run stops or the call's time is over. */
  signal: AbortSignal;
}

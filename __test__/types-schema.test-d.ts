/** Type tests of tool parameters: this file only has to compile. */
import { createAgent } from '@cloudbase/open-agent-kernel';
import type { AgentConfig, ToolDefinition } from '@cloudbase/open-agent-kernel';
import * as z from 'zod';
import * as mini from 'zod/mini';
import { z as z3 } from 'zod/v3';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTrue = <T extends true>(): T | undefined => undefined;

function tool<T>(definition: ToolDefinition<T>): T {
  return definition as never;
}
const common = { name: 't', description: 'd' };

const four = tool({
  ...common,
  parameters: z.object({ a: z.string().transform(Number), b: z.boolean().default(true) }),
  execute: ({ a, b }) => a.toFixed() + b,
});
isTrue<Equal<typeof four, { a: number; b: boolean }>>();
const small = tool({
  ...common,
  parameters: mini.object({ a: mini.optional(mini.string()) }),
  execute: ({ a }) => a,
});
isTrue<Equal<typeof small, { a?: string | undefined }>>();
const three = tool({
  ...common,
  parameters: z3.object({ a: z3.string().transform(Number) }),
  execute: ({ a }) => a.toFixed(),
});
isTrue<Equal<typeof three, { a: number }>>();
const shape = tool({
  ...common,
  parameters: { a: z.string(), b: z.number().optional() },
  execute: ({ a, b }) => a.length + (b ?? 0),
});
isTrue<Equal<typeof shape, { a: string; b: number | undefined }>>();
const shape3 = tool({
  ...common,
  parameters: { a: z3.string(), b: z3.number() },
  execute: ({ a, b }) => a.length + b,
});
isTrue<Equal<typeof shape3, { a: string; b: number }>>();
declare const standard: {
  '~standard': {
    version: 1;
    vendor: 'mine';
    validate: (value: unknown) => { value: { a: string } };
    types?: { input: { a: number }; output: { a: string } };
    jsonSchema: {
      input: (options: { target: string }) => Record<string, unknown>;
      output: (options: { target: string }) => Record<string, unknown>;
    };
  };
};
const other = tool({ ...common, parameters: standard, execute: ({ a }) => a.length });
isTrue<Equal<typeof other, { a: string }>>();
const json: ToolDefinition<{ a: string }> = {
  ...common,
  parameters: { type: 'object', properties: { a: { $ref: '#/$defs/a' } }, $defs: { a: {} } },
  execute: ({ a }) => a.length,
};

createAgent({
  envId: 'env',
  model: 'glm',
  tools: [
    json,
    {
      ...common,
      parameters: z.object({ a: z.string() }),
      execute: (input) => void isTrue<Equal<typeof input, { a: string }>>(),
    },
    {
      ...common,
      parameters: { a: z.string(), b: z.number() },
      execute: (input) => void isTrue<Equal<typeof input, { a: string; b: number }>>(),
    },
    {
      ...common,
      parameters: z3.object({ a: z3.string() }),
      execute: async (input, { signal }) => {
        isTrue<Equal<typeof input, { a: string }>>();
        return signal.aborted;
      },
    },
    { ...common, parameters: standard, execute: ({ a }) => a.length },
  ],
});

createAgent({
  envId: 'env',
  model: 'glm',
  streamFormat: 'events',
  tools: [
    { ...common, parameters: { type: 'object' }, execute: ({ a }) => a.b.c },
    { ...common, parameters: { type: 'object' }, execute: (input: { a: string }) => input.a },
    {
      ...common,
      parameters: z.object({ a: z.string() }),
      // @ts-expect-error the schema gives a text
      execute: (input: { a: number }) => input,
    },
    // @ts-expect-error no schema
    { ...common, parameters: 5, execute: () => 1 },
  ],
});
// @ts-expect-error a tool needs parameters
createAgent({ envId: 'env', model: 'glm', tools: [{ ...common, execute: () => 1 }] });
const tools: ToolDefinition<any, any>[] = [json, json];
createAgent({ envId: 'env', model: 'glm', tools });

declare const config: AgentConfig;
createAgent(config);
declare const eventsConfig: AgentConfig<'events'>;
createAgent<'events'>(eventsConfig);
createAgent({ ...config, tools: [...tools] });

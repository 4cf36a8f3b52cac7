/** Type tests: this file only has to compile. */
import { createAgent, InvalidConfigError, KernelError } from '@cloudbase/open-agent-kernel';
import type {
  AcpSessionUpdate,
  AcpStreamMessage,
  AcpV1SessionUpdate,
  Agent,
  PromptResult,
  Session,
  SessionEvent,
} from '@cloudbase/open-agent-kernel';
import { startEmulator } from '@cloudbase/open-agent-kernel/testing';
import { z } from 'zod';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const isTrue = <T extends true>(): T | undefined => undefined;

const agent = createAgent({
  envId: 'env',
  model: { id: 'glm-5.1', restart: 'never' },
  tools: [
    {
      name: 'add',
      description: 'Adds two numbers.',
      parameters: z.object({ a: z.number(), b: z.number() }),
      execute: async ({ a, b }, ctx) => `${a + b} ${ctx.signal.aborted}`,
    },
  ],
  hooks: { onUserMessage: async ({ prompt }) => ({ modifiedPrompt: prompt.trim() }) },
});
isTrue<Equal<typeof agent, Agent<AcpSessionUpdate>>>();

export async function uses(session: Session): Promise<PromptResult> {
  const stream = session.send('hi', { signal: AbortSignal.timeout(1_000), throwOnError: true });
  for await (const update of stream) {
    if (update.sessionUpdate === 'agent_message_chunk')
      isTrue<Equal<typeof update.messageId, string>>();
    if (update.sessionUpdate === 'agent_phase' && update.phase === 'idle') {
      const reason: string | undefined = update.stopReason;
      return { ...(await agent.prompt('hi')), stopReason: reason ?? 'end_turn' };
    }
    // @ts-expect-error a chunk has no phase
    if (update.sessionUpdate === 'agent_message_chunk') update.phase;
  }
  await using emulator = await startEmulator();
  emulator.requests satisfies unknown[];
  return session.prompt({ type: 'message', content: 'hi' });
}

const base = { envId: 'env', model: 'glm-5.1' };
isTrue<Equal<ReturnType<typeof createAgent<'events'>>, Agent<SessionEvent>>>();
const events = createAgent({ ...base, streamFormat: 'events' });
isTrue<Equal<typeof events, Agent<SessionEvent>>>();
const jsonrpc = createAgent({ ...base, streamFormat: 'acp-jsonrpc' });
isTrue<Equal<typeof jsonrpc, Agent<AcpStreamMessage>>>();
const flat = createAgent({ ...base, streamFormat: 'acp-v1' });
isTrue<Equal<typeof flat, Agent<AcpV1SessionUpdate>>>();

// @ts-expect-error envId is required
createAgent({ model: 'glm-5.1' });
// @ts-expect-error an unknown format
createAgent({ envId: 'env', model: 'glm-5.1', streamFormat: 'xml' });
// @ts-expect-error a session needs a user
agent.startSession({});

export const isKernelError = (error: unknown): boolean =>
  error instanceof InvalidConfigError && error instanceof KernelError && error.code !== '';

/** Type tests: this file only has to compile. */
import {
  createAgent,
  InMemoryClientToolStore,
  InvalidConfigError,
  KernelError,
} from '@cloudbase/open-agent-kernel';
import type {
  AcpSessionUpdate,
  AcpStreamMessage,
  AcpV1SessionUpdate,
  Agent,
  ClientToolResultStore,
  PendingCall,
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

// What waits is told in every format, and answered in one way.
export async function answers(session: Session): Promise<PendingCall[]> {
  for await (const update of session.send('hi')) {
    if (update.sessionUpdate === 'tool_confirm') {
      isTrue<Equal<typeof update.input, Record<string, unknown>>>();
      session.respondToolUse({ toolUseId: update.toolCallId, output: 1, isError: false });
    }
    if (update.sessionUpdate === 'ask_user') {
      const [{ question, options }] = update.questions;
      const answer = { answers: { [question]: options.map(({ label }) => label) } };
      session.respondAskUser({ toolUseId: update.toolCallId, answer }, { throwOnError: true });
    }
  }
  session.send({ type: 'tool_result', toolUseId: 't', output: null });
  // @ts-expect-error an answer needs an id
  session.respondToolUse({ output: 1 });
  return (await session.prompt('hi')).pending;
}
export function open(message: AcpStreamMessage, update: AcpV1SessionUpdate, event: SessionEvent) {
  if (message.method !== 'session/update') isTrue<Equal<typeof message.id, string>>();
  if (update.sessionUpdate === 'request_permission') update.toolCall.rawInput satisfies object;
  // @ts-expect-error this format says request_permission
  if (update.sessionUpdate === 'tool_confirm') return undefined;
  if (event.type === 'tool_use_required') return event.toolUseId;
  return event.type === 'ask_user_required' ? event.questions[0]?.header : undefined;
}
createAgent({
  ...base,
  askUser: { hint: false },
  toolStore: new InMemoryClientToolStore() satisfies ClientToolResultStore,
  tools: [{ name: 'pick', description: 'Lets the user pick.', parameters: z.object({}) }],
});

export const isKernelError = (error: unknown): boolean =>
  error instanceof InvalidConfigError && error instanceof KernelError && error.code !== '';

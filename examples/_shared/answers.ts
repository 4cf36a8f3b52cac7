/** Reading the answers of an agent in examples. */
import type { AcpSessionUpdate, Session } from '@cloudbase/open-agent-kernel';

/** A call that the model made: the name of the tool, and what it gave. */
export interface SeenCall {
  id: string;
  name: string;
  result?: unknown;
}

/** A call that waits for its result. */
export interface WaitingCall {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

/** What a stream consisted of. */
export interface Answer {
  text: string;
  calls: SeenCall[];
  waiting: WaitingCall[];
  stopReason?: string;
}

/** Sends a message, shows the conversation on the terminal and returns the text of the answer. */
export async function ask(session: Session, message: string): Promise<string> {
  console.log(`you    ${message}`);
  const { text } = await showAnswer(session.send(message));
  return text;
}

/** Reads a stream to its end and shows its calls and its text on the terminal. */
export async function showAnswer(stream: AsyncIterable<AcpSessionUpdate>): Promise<Answer> {
  const answer: Answer = { text: '', calls: [], waiting: [] };
  for await (const update of stream) take(update, answer);
  for (const { name, result } of answer.calls) {
    if (result !== undefined) console.log(`       ${name} gave ${JSON.stringify(result)}`);
  }
  console.log(`agent  ${answer.text}\n`);
  return answer;
}

function take(update: AcpSessionUpdate, answer: Answer): void {
  switch (update.sessionUpdate) {
    case 'agent_message_chunk':
      answer.text += update.content.text;
      break;
    case 'tool_call':
      answer.calls.push({ id: update.toolCallId, name: update.title });
      break;
    case 'tool_call_update': {
      const call = answer.calls.find(({ id }) => id === update.toolCallId);
      if (call && update.status !== 'in_progress') call.result = update.result;
      break;
    }
    case 'tool_confirm': {
      const { toolCallId: id, toolName: name, input } = update;
      answer.waiting.push({ id, name, input });
      break;
    }
    case 'log':
      if (update.level === 'error') {
        throw new Error(`${update.name} ${update.code}: ${update.message}`);
      }
      break;
    case 'agent_phase':
      if (update.phase === 'idle') answer.stopReason = update.stopReason;
      break;
  }
}

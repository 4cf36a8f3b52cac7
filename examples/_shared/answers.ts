/** Reading the answers of an agent in examples. */
import type { AcpSessionUpdate, Session } from '@cloudbase/open-agent-kernel';

/** Sends a message, shows the conversation on the terminal and returns the text of the answer. */
export async function ask(session: Session, message: string): Promise<string> {
  console.log(`you    ${message}`);
  let answer = '';
  for await (const update of session.send(message)) {
    if (update.sessionUpdate === 'agent_message_chunk') answer += update.content.text;
    const failure = failureOf(update);
    if (failure) throw new Error(failure);
  }
  console.log(`agent  ${answer}\n`);
  return answer;
}

function failureOf(update: AcpSessionUpdate): string | undefined {
  if (update.sessionUpdate !== 'log' || update.level !== 'error') return undefined;
  return `${update.name} ${update.code}: ${update.message}`;
}

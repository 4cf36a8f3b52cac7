/** A tool that the client runs, such as a browser: the agent pauses until the result is sent back. */
import type { Session, ToolDefinition } from '@cloudbase/open-agent-kernel';

import { showAnswer, type Answer } from './answers.ts';

/** Described by a JSON Schema, as clients send them. */
export const getWeather: ToolDefinition = {
  name: 'get_weather',
  description: 'Gives the current weather in a city. Runs in the browser of the user.',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string', description: 'Name of the city, in English' } },
    required: ['city'],
  },
  clientSide: true,
};

/** What the browser would answer. */
function weatherIn(input: Record<string, unknown>) {
  return { city: input['city'], condition: 'sunny', temperature: 22 };
}

/** Asks, runs the tools that the agent waits for, and returns the last answer. */
export async function askClient(session: Session, message: string): Promise<Answer> {
  console.log(`you    ${message}`);
  let answer = await showAnswer(session.send(message));
  while (answer.waiting.length > 0) {
    // While others wait, each answer says so again.
    const [{ id, name, input }] = answer.waiting;
    console.log(`client runs ${name}(${JSON.stringify(input)})`);
    const response = { toolUseId: id, output: weatherIn(input) };
    answer = await showAnswer(session.respondToolUse(response));
  }
  return answer;
}

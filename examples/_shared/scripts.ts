/**
 * What the model of the local emulator says in examples that need it to call certain tools. A real
 * model needs none of this.
 */
import { toolCall, toolCalls, type Rule } from '@cloudbase/open-agent-kernel/testing';

/** Multiplies, then adds to the product, then says the sum. */
export const calculatorScript: Rule[] = [
  {
    when: { tool: 'mcp__calculator__multiply' },
    reply: (_request, { toolResult }) =>
      toolCall('mcp__calculator__add', { a: Number(toolResult), b: 100 }),
  },
  { when: { tool: 'mcp__calculator__add' }, reply: '答案是 {{toolResult}}。' },
  { reply: toolCall('mcp__calculator__multiply', { a: 23, b: 47 }, { text: '我来算一算。' }) },
];

/** Adds and echoes in one go, then says what came of it. */
export const everythingScript: Rule[] = [
  { when: { hasToolResult: true }, reply: '两个工具的结果：{{toolResult}}' },
  {
    reply: toolCalls([
      { name: 'mcp__everything__get-sum', input: { a: 17, b: 25 } },
      { name: 'mcp__everything__echo', input: { message: 'hello mcp' } },
    ]),
  },
];

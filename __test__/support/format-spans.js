/**
 * Spans and metrics of runs.
 *
 * @module
 */
import { text, toolCalls } from '../../emulator/index.js';
import { eventually } from './boundary.js';
import { gatewayFor, tool } from './gateway.js';

const COUNTS = {
  startUsage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 1 },
  usage: { input_tokens: 20, cache_read_input_tokens: 5, output_tokens: 7 },
};

/** Two requests; between them a tool that works and one that fails. */
export const TURN = {
  rules: [
    { when: { hasToolResult: true }, reply: text('Done.', { id: 'msg_2', ...COUNTS }) },
    {
      reply: toolCalls(
        [
          { id: 'call_1', name: 'look' },
          { id: 'call_2', name: 'fail' },
        ],
        { id: 'msg_1', text: 'Let me.', ...COUNTS },
      ),
    },
  ],
  tools: [tool('look', () => 'seen'), tool('fail', () => Promise.reject(new Error('no')))],
  name: 'helper',
};

/** The names of the spans of that turn, in the order in which they end. */
export const SPANS = [
  'chat glm',
  'execute_tool look',
  'execute_tool fail',
  'chat glm',
  'invoke_agent helper',
];

/**
 * An agent whose spans and metrics are kept.
 *
 * @param {import('node:test').TestContext} t
 * @param {object} options see `gatewayFor`
 */
export async function watched(t, options) {
  const spans = [];
  const metrics = [];
  const gateway = await gatewayFor(t, {
    telemetry: (span) => spans.push(span),
    onMetric: (metric) => metrics.push(metric),
    ...options,
  });
  const turns = () => spans.filter(({ name }) => name.startsWith('invoke_agent')).length;
  return {
    ...gateway,
    spans,
    metrics,
    /** Runs a turn and waits until all of it was told. */
    async run(input, more) {
      const before = turns();
      const elements = await gateway.send(input, more);
      await eventually(() => turns() > before, 'the span of the turn');
      return elements;
    },
  };
}

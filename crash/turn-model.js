/**
 * The script of the model: one turn with three calls in one answer, and what the tools do.
 *
 * @module
 */
export const PROMPT = 'go';
export const PROMPT_OF_RESUME = 'go on';
export const LAST_TEXT = 'All done.';
export const TEXT_OF_RESUME = 'Went on.';

/** Tools by name: two that may run together, then one that may not. */
export const TOOLS = {
  look: { readOnly: true },
  list: { readOnly: true },
  pay: { readOnly: false },
};

/** What a tool gives. */
export function resultOf(tool, call) {
  return `${tool} ${call} done`;
}

/** Rules of the emulator, for any number of conversations at a time. */
export const turnRules = [
  { when: { user: PROMPT_OF_RESUME }, reply: { text: TEXT_OF_RESUME } },
  { when: { user: PROMPT, hasToolResult: true }, reply: { text: LAST_TEXT } },
  {
    when: { user: PROMPT },
    reply: {
      text: 'Looking.',
      toolCalls: Object.keys(TOOLS).map((name) => ({ name, input: { name } })),
    },
  },
];

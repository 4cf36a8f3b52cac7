/**
 * Token counts in the words of the chat completions API, where the prompt includes what was read
 * from the cache or written to it. Counts that the script left out are missing here as well.
 *
 * @param {object} usage of the Messages API
 * @returns {object}
 */
export function chatUsage(usage) {
  const { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached } = usage;
  const written = usage.cache_creation_input_tokens ?? 0;
  const counts = {};
  if (input !== undefined) counts.prompt_tokens = input + (cached ?? 0) + written;
  if (output !== undefined) counts.completion_tokens = output;
  if (input !== undefined && output !== undefined) {
    counts.total_tokens = counts.prompt_tokens + output;
  }
  if (cached !== undefined) counts.prompt_tokens_details = { cached_tokens: cached };
  return counts;
}

const REASONS = {
  end_turn: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_calls',
  refusal: 'content_filter',
};

/**
 * The finish reason for a stop reason; one without a counterpart stays as it is.
 *
 * @param {string | null} stopReason
 * @returns {string | null}
 */
export function finishReason(stopReason) {
  return REASONS[stopReason] ?? stopReason;
}

import { requestRules } from '../request-rules.js';
import { isObject } from '../walk.js';

/** Rules about the request as a whole; everything after them relies on its shape. */
export const chatRequestRules = {
  'body-object': requestRules['body-object'],
  'lone-surrogate': requestRules['lone-surrogate'],
  model: requestRules.model,
  'max-tokens': maxTokens,
  stream: requestRules.stream,
  'stream-options': streamOptions,
};

function maxTokens(request) {
  for (const name of ['max_tokens', 'max_completion_tokens']) {
    const limit = request[name];
    if (limit === undefined || (Number.isInteger(limit) && limit > 0)) continue;
    return `${name} must be a positive integer`;
  }
  return null;
}

function streamOptions({ stream, stream_options: options }) {
  if (options === undefined) return null;
  if (!isObject(options)) return 'stream_options must be an object';
  if (stream !== true) return 'stream_options is allowed only with stream true';
  const { include_usage: usage } = options;
  if (usage === undefined || typeof usage === 'boolean') return null;
  return 'stream_options.include_usage must be a boolean';
}

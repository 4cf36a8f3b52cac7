import { planChunks } from '../chat/chunks.js';
import { planCompletion } from '../chat/completion.js';
import { toMessagesRequest } from '../chat/to-messages.js';
import { chatWire } from '../stream/chat-wire.js';
import { validateChatRequest } from '../validator/chat/validate-chat-request.js';
import { chatError } from './errors.js';

/**
 * The OpenAI chat completions API.
 *
 * @type {import('./messages.js').Endpoint}
 */
export const chatEndpoint = {
  path: '/chat/completions',
  validate: validateChatRequest,
  toRequest: toMessagesRequest,
  dialect: { messagePrefix: 'chatcmpl', callPrefix: 'call', noInput: '{}' },
  signsThinking: false,
  events: planChunks,
  message: planCompletion,
  wire: chatWire,
  errorForm: chatError,
};

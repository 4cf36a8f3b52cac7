/**
 * Library entry of the emulator, published as `@cloudbase/open-agent-kernel/testing`.
 *
 * @module
 */
export { defaultRules } from './default-rules.js';
export { httpError, text, thinking, toolCall, toolCalls } from './model/replies.js';
export { startEmulator } from './server/emulator.js';
export { readEvents } from './stream/read-events.js';
export { chatValidatorRules, validateChatRequest } from './validator/chat/validate-chat-request.js';
export { validateRequest, validatorRules } from './validator/validate-request.js';

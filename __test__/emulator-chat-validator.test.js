import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chatValidatorRules, validateChatRequest } from '../emulator/index.js';
import * as make from '../emulator/fixtures/chat-requests.js';

const { assistant, call, calling, image, request, result, say, system, tool, user } = make;

const hi = user('hi');
const valid = request([hi]);
const withFields = (fields) => request([hi], fields);
const withTools = (...tools) => withFields({ tools });
/** A conversation in which calls are answered by these messages. */
const loop = (calls, ...answers) => request([hi, calling(...calls), ...answers]);
const once = loop([call('a')], result('a'));
const ab = [call('a'), call('b')];
const answered = loop(ab, result('a'), result('b'));
const parts = (...content) => request([user(content)]);
const png = 'data:image/png;base64,AAAA';

/** Rule, a request that breaks it, the place it names, and a valid neighbour. */
const CASES = [
  ['body-object', [], 'body', valid],
  ['lone-surrogate', request([user('a\ude00')]), 'messages.0.content', request([user('😀')])],
  [
    'lone-surrogate',
    loop([call('a')], result('a', 'x\ud83d')),
    'messages.2.content',
    loop([call('a')], result('a', 'x😀')),
  ],
  ['model', withFields({ model: '' }), 'model', withFields({ model: 'x' })],
  [
    'max-tokens',
    withFields({ max_tokens: 0 }),
    'max_tokens',
    withFields({ max_tokens: undefined }),
  ],
  [
    'max-tokens',
    withFields({ max_completion_tokens: 1.5 }),
    'max_completion_tokens',
    withFields({ max_completion_tokens: 1 }),
  ],
  ['stream', withFields({ stream: 1 }), 'stream', withFields({ stream: false })],
  [
    'stream-options',
    withFields({ stream_options: { include_usage: true } }),
    'stream true',
    withFields({ stream: true, stream_options: { include_usage: true } }),
  ],
  [
    'stream-options',
    withFields({ stream: true, stream_options: { include_usage: 'yes' } }),
    'stream_options.include_usage',
    withFields({ stream: true, stream_options: {} }),
  ],
  [
    'stream-options',
    withFields({ stream: true, stream_options: true }),
    'stream_options',
    withFields({ stream: true }),
  ],
  ['messages-present', request([]), 'messages', valid],
  ['messages-present', request({}), 'messages', valid],
  ['message-role', request([{ role: 'developer', content: 'x' }]), 'messages.0.role', valid],
  ['message-role', request([hi, 'x']), 'messages.1', valid],
  ['system-first', request([hi, system('s')]), 'messages.1.role', request([system('s'), hi])],
  ['system-first', request([system('s'), system('t'), hi]), 'messages.1.role', valid],
  ['user-present', request([system('s')]), 'messages', request([system('s'), hi])],
  ['content-present', request([{ role: 'user' }]), 'messages.0.content', valid],
  ['content-present', request([user([])]), 'messages.0.content', parts(say('x'))],
  ['content-present', request([system(null), hi]), 'messages.0.content', valid],
  [
    'content-present',
    request([hi, assistant(null)]),
    'messages.1.content',
    request([hi, assistant('x')]),
  ],
  [
    'content-present',
    request([hi, assistant([say('x')]), hi]),
    'messages.1.content',
    request([hi, assistant('x'), hi]),
  ],
  [
    'content-present',
    loop([call('a')], result('a', null)),
    'messages.2.content',
    loop([call('a')], result('a', 'null')),
  ],
  [
    'content-present',
    loop([call('a')], result('a', [say('x')])),
    'messages.2.content',
    loop([call('a')], result('a', 'x')),
  ],
  ['part-shape', parts('x'), 'messages.0.content.0', parts(say('x'))],
  ['part-shape', parts({ type: 'audio' }), 'messages.0.content.0.type', parts(image(png))],
  [
    'part-shape',
    parts({ type: 'text' }, image(png)),
    'messages.0.content.0.text',
    parts(say('x'), image(png)),
  ],
  [
    'part-shape',
    parts({ type: 'image_url', image_url: png }),
    'messages.0.content.0.image_url',
    parts(image(png)),
  ],
  [
    'part-shape',
    parts(image('data:image/png;base64,no base64!')),
    'messages.0.content.0.image_url.url',
    parts(image('https://x/y.png')),
  ],
  ['empty-text', request([user('')]), 'messages.0.content', valid],
  ['empty-text', request([user(' \n')]), 'messages.0.content', valid],
  ['empty-text', request([system(''), hi]), 'messages.0.content', request([system('s'), hi])],
  ['empty-text', parts(say('x'), say(' ')), 'messages.0.content.1.text', parts(say('x'))],
  [
    'empty-text',
    request([hi, { ...calling(call('a')), content: '' }, result('a')]),
    'messages.1.content',
    request([hi, { ...calling(call('a')), content: 'x' }, result('a')]),
  ],
  ['empty-text', loop([call('a')], result('a', ' ')), 'messages.2.content', once],
  ['tools-shape', withTools(), 'tools', withTools(tool('a'))],
  ['tools-shape', withFields({ tools: {} }), 'tools', withFields({ tools: undefined })],
  ['tools-shape', withTools({ ...tool('a'), type: 'web' }), 'tools.0.type', withTools(tool('a'))],
  ['tools-shape', withTools({ type: 'function' }), 'tools.0.function', withTools(tool('a'))],
  ['tool-name', withTools(tool('a.b')), 'tools.0.function.name', withTools(tool('a_b-C9'))],
  [
    'tool-name',
    withTools(tool('a'.repeat(65))),
    'tools.0.function.name',
    withTools(tool('a'.repeat(64))),
  ],
  [
    'tool-names-unique',
    withTools(tool('a'), tool('a')),
    'tools.1.function.name',
    withTools(tool('a'), tool('A')),
  ],
  [
    'tool-schema',
    withTools(tool('a', { parameters: { type: 'string' } })),
    'tools.0.function.parameters.type',
    withTools(tool('a')),
  ],
  [
    'tool-schema',
    withTools(tool('a', { parameters: undefined })),
    'tools.0.function.parameters',
    withTools(tool('a', { parameters: { type: 'object', properties: {} } })),
  ],
  [
    'calls-shape',
    request([{ ...hi, tool_calls: [call('a')] }, result('a')]),
    'messages.0.tool_calls',
    once,
  ],
  [
    'calls-shape',
    request([hi, { ...assistant('x'), tool_calls: [] }]),
    'messages.1.tool_calls',
    request([hi, assistant('x')]),
  ],
  ['calls-shape', loop(['a'], result('a')), 'messages.1.tool_calls.0', once],
  ['calls-shape', loop([call('')], result('')), 'messages.1.tool_calls.0.id', once],
  [
    'calls-shape',
    loop([{ ...call('a'), type: undefined }], result('a')),
    'messages.1.tool_calls.0.type',
    once,
  ],
  [
    'calls-shape',
    loop([{ id: 'a', type: 'function' }], result('a')),
    'messages.1.tool_calls.0.function',
    once,
  ],
  [
    'call-name',
    loop([call('a', { name: 'no way' })], result('a')),
    'messages.1.tool_calls.0.function.name',
    loop([call('a', { name: 'yes' })], result('a')),
  ],
  ...['', '[]', 'null', '{"a":', { a: 1 }].map((text) => [
    'call-arguments',
    loop([call('a', { arguments: text })], result('a')),
    'messages.1.tool_calls.0.function.arguments',
    loop([call('a', { arguments: '{"a":1}' })], result('a')),
  ]),
  [
    'call-ids-unique',
    request([hi, calling(call('a')), result('a'), calling(call('a')), result('a')]),
    'messages.3.tool_calls.0.id',
    request([hi, calling(call('a')), result('a'), calling(call('b')), result('b')]),
  ],
  [
    'call-ids-unique',
    loop([call('a'), call('a')], result('a')),
    'messages.1.tool_calls.1.id',
    answered,
  ],
  ['results-known', request([result('a'), hi]), 'messages.0', valid],
  ['results-known', request([hi, result('a')]), 'messages.1', once],
  ['results-known', loop([call('a')], result('a'), result('z')), 'messages.3', answered],
  ['results-known', loop([call('a')], result(undefined)), 'messages.2', once],
  [
    'results-known',
    loop([call('a')], result('a'), assistant('x'), result('a')),
    'messages.4',
    loop([call('a')], result('a'), assistant('x')),
  ],
  [
    'results-known',
    loop([call('a')], hi, result('a')),
    'messages.3',
    loop([call('a')], result('a'), hi),
  ],
  ['results-once', loop([call('a')], result('a'), result('a')), 'messages.3', once],
  ['calls-answered', loop([call('a')]), 'messages.1.tool_calls.0', once],
  ['calls-answered', loop(ab, result('a')), 'messages.1.tool_calls.1', answered],
  [
    'calls-answered',
    loop([call('a')], hi),
    'messages.1.tool_calls.0',
    loop([call('a')], result('a'), hi),
  ],
  ['results-in-order', loop(ab, result('b'), result('a')), 'messages.2', answered],
];

for (const [index, [rule, bad, place, good]] of CASES.entries()) {
  test(`${rule} (case ${index})`, () => {
    const violation = validateChatRequest(bad);
    assert.equal(violation?.rule, rule);
    assert.ok(violation.message.includes(place), violation.message);
    assert.equal(validateChatRequest(good), null);
  });
}

test('every rule has a case', () => {
  const covered = new Set(CASES.map(([rule]) => rule));
  assert.deepEqual(
    chatValidatorRules.filter((rule) => !covered.has(rule)),
    [],
  );
});

test('unknown fields are valid', () => {
  const answer = { ...assistant('x'), reasoning_content: 'hm', future: 1 };
  assert.equal(validateChatRequest(request([hi, answer, hi], { future_field: 1 })), null);
});

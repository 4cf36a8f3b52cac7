import assert from 'node:assert/strict';
import { test } from 'node:test';

import { toolCall } from '../emulator/index.js';
import { completion, deltasOf, send, stream, textOf } from '../emulator/fixtures/chat-client.js';
import { emulatorFor } from '../emulator/fixtures/client.js';

const rules = [{ reply: { text: ['北京', '😀', ' end'] } }];
const start = (t, knobs) => emulatorFor(t, { rules, knobs });
const raw = async (emulator, knobs) => {
  emulator.setKnobs(knobs);
  return (await send(emulator, 'x')).text();
};
const count = (text, pattern) => text.match(pattern)?.length ?? 0;

test('the text survives every format knob', async (t) => {
  const emulator = await start(t, {});
  const variants = [
    { splitBytes: 1 },
    { splitAt: [3, 10, 200], splitDelayMs: 1 },
    { crlf: true, splitBytes: 5 },
    { comments: true, pings: 1 },
    { noEventLine: true, unknownEvents: true },
    { chunkDelayMs: 1, latencyMs: 1, firstDeltaMs: 1 },
  ];
  for (const knobs of variants) {
    emulator.setKnobs(knobs);
    assert.equal(textOf(await stream(emulator, 'x')), '北京😀 end', JSON.stringify(knobs));
  }
});

test('the format knobs show on the wire', async (t) => {
  const emulator = await start(t, {});
  assert.ok(!(await raw(emulator, {})).includes('event:'));
  assert.ok(!/[^\r]\n/.test(await raw(emulator, { crlf: true, comments: true, pings: 1 })));
  // Six events: the first, three texts, the finish reason and [DONE].
  assert.equal(count(await raw(emulator, { comments: true }), /^: keep-alive$/gm), 6);
  assert.equal(count(await raw(emulator, { pings: 2 }), /^: ping$/gm), 3);
  assert.match(await raw(emulator, { unknownEvents: true }), /future\.object[^]*future_content/);
  assert.match(await raw(emulator, { invalidJsonAfter: 2 }), /^data: \{[^\n]*"bro\n\n/m);
  const open = await raw(emulator, { noMessageStop: true });
  assert.ok(open.includes('"finish_reason":"stop"') && !open.includes('[DONE]'));
});

test('textChunk cuts the text', async (t) => {
  const emulator = await emulatorFor(t, { rules: [{ reply: 'abcdef' }], knobs: { textChunk: 4 } });
  const texts = deltasOf(await stream(emulator, 'x')).map(({ content }) => content);
  assert.deepEqual(texts, ['', 'abcd', 'ef', undefined]);
});

test('firstDeltaMs waits behind the first chunk', async (t) => {
  const emulator = await start(t, { firstDeltaMs: 60_000 });
  const abort = new AbortController();
  const response = await send(emulator, 'x', { signal: abort.signal });
  const { value } = await response.body.getReader().read();
  assert.equal(count(Buffer.from(value).toString(), /^data: /gm), 1);
  abort.abort();
});

test('a call is a delta too', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [{ reply: toolCall('f') }],
    knobs: { firstDeltaMs: 60_000 },
  });
  const abort = new AbortController();
  const response = await send(emulator, 'x', { signal: abort.signal });
  const { value } = await response.body.getReader().read();
  assert.ok(!Buffer.from(value).toString().includes('tool_calls'));
  abort.abort();
});

test('truncation ends the body cleanly after events or bytes', async (t) => {
  const emulator = await start(t, {});
  const cut = await raw(emulator, { truncateAfter: 3, pings: 1, comments: true });
  assert.equal(count(cut, /^data: /gm), 3);
  const beforeDone = await raw(emulator, { truncateAfter: 5 });
  assert.ok(beforeDone.includes('"stop"') && !beforeDone.includes('[DONE]'));
  assert.equal((await raw(emulator, { truncateBytes: 100 })).length, 100);
});

test('resetAfter delivers the events, then breaks the connection', async (t) => {
  const emulator = await start(t, { resetAfter: 3 });
  const response = await send(emulator, 'x');
  let seen = '';
  await assert.rejects(async () => {
    for await (const bytes of response.body) seen += Buffer.from(bytes).toString();
  });
  assert.equal(count(seen, /^data: /gm), 3);
});

test('errorAfter sends an error chunk', async (t) => {
  const error = { type: 'invalid_request_error', message: 'no' };
  const emulator = await start(t, { errorAfter: { events: 0, error } });
  assert.deepEqual(await stream(emulator, 'x'), [{ error }]);
  emulator.setKnobs({ errorAfter: { events: 3 } });
  const chunks = await stream(emulator, 'x');
  assert.equal(chunks.length, 4);
  assert.deepEqual(chunks[3], { error: { type: 'overloaded_error', message: 'Overloaded' } });
});

test('a stalled stream with pings is released when the client goes away', async (t) => {
  const emulator = await start(t, { stallAfter: 1, stallPings: 5 });
  const abort = new AbortController();
  const response = await send(emulator, 'x', { signal: abort.signal });
  let seen = '';
  await assert.rejects(async () => {
    for await (const bytes of response.body) {
      seen += Buffer.from(bytes).toString();
      if (seen.includes(': ping\n')) abort.abort();
    }
  });
  assert.equal(count(seen, /^data: /gm), 1);
  await emulator.idle();
  assert.equal(emulator.openStreams(), 0);
  assert.equal(emulator.requests[0].aborted, true);
});

test('answers that are no stream', async (t) => {
  const emulator = await start(t, { json: true });
  const json = await send(emulator, 'x');
  assert.equal(json.headers.get('content-type'), 'application/json');
  assert.equal((await json.json()).choices[0].message.content, '北京😀 end');
  assert.match(await raw(emulator, { html: true }), /^<!doctype html>/);
  emulator.setKnobs({ dropConnection: true });
  await assert.rejects(send(emulator, 'x'));
  emulator.setKnobs({ hangHeaders: true });
  await assert.rejects(send(emulator, 'x', { signal: AbortSignal.timeout(50) }));
  emulator.setKnobs({ status: 503, headers: { 'x-should-retry': 'false' } });
  const down = await send(emulator, 'x');
  assert.equal(down.headers.get('x-should-retry'), 'false');
  assert.equal((await down.json()).error.type, 'api_error');
  emulator.setKnobs({ splitBytes: 3 });
  assert.equal((await completion(emulator, 'x')).choices[0].message.content, '北京😀 end');
});

test('hugeLine sends a line without an end', async (t) => {
  const body = await raw(await start(t, {}), { hugeLine: 100_000 });
  const last = body.slice(body.lastIndexOf('\n') + 1);
  assert.ok(last.startsWith('data: ') && last.length > 100_000);
});

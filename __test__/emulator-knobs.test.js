import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { test } from 'node:test';

import { startEmulator } from '../emulator/index.js';
import { emulatorFor, message, send, stream, textOf } from '../emulator/fixtures/client.js';

const rules = [{ reply: { text: ['北京', '😀', ' end'] } }];
const start = (t, knobs) => emulatorFor(t, { rules, knobs });

/** The body as the pieces in which it was written: one for each HTTP chunk. */
function rawPieces(emulator) {
  const body = {
    model: 'm',
    max_tokens: 9,
    stream: true,
    messages: [{ role: 'user', content: 'x' }],
  };
  return new Promise((resolve, reject) => {
    const call = httpRequest(
      `${emulator.gatewayUrl}/v1/messages`,
      { method: 'POST', headers: { authorization: `Bearer ${emulator.apiKey}` }, agent: false },
      (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('end', () => resolve(pieces));
        response.on('error', reject);
      },
    );
    call.on('error', reject);
    call.end(JSON.stringify(body));
  });
}

test('splitBytes writes pieces of n bytes', async (t) => {
  const pieces = await rawPieces(await start(t, { splitBytes: 7 }));
  assert.ok(pieces.slice(0, -1).every(({ length }) => length === 7));
  assert.match(Buffer.concat(pieces).toString(), /message_stop/);
});

test('splitAt cuts at exact offsets', async (t) => {
  const pieces = await rawPieces(await start(t, { splitAt: [400, 3, 10] }));
  assert.deepEqual(
    pieces.slice(0, 3).map(({ length }) => length),
    [3, 7, 390],
  );
});

test('the text survives every format knob', async (t) => {
  const emulator = await start(t, {});
  const variants = [
    { splitBytes: 1 },
    { crlf: true, splitBytes: 5 },
    { comments: true },
    { noEventLine: true },
    { pings: 1 },
    { chunkDelayMs: 1, latencyMs: 1, firstDeltaMs: 1 },
  ];
  for (const knobs of variants) {
    emulator.setKnobs(knobs);
    assert.equal(textOf(await stream(emulator, 'x')), '北京😀 end', JSON.stringify(knobs));
  }
});

test('the format knobs show on the wire', async (t) => {
  const emulator = await start(t, {});
  const raw = async (knobs) => {
    emulator.setKnobs(knobs);
    return (await send(emulator, 'x')).text();
  };
  assert.ok(!/[^\r]\n/.test(await raw({ crlf: true, comments: true })));
  assert.ok((await raw({ comments: true })).includes(': keep-alive\n'));
  assert.ok(!(await raw({ noEventLine: true })).includes('event:'));
  assert.equal((await raw({ pings: 2 })).match(/event: ping/g).length, 4);
  assert.match(await raw({ unknownEvents: true }), /future_event[^]*future_delta/);
  assert.match(await raw({ invalidJsonAfter: 2 }), /"bro\n\n/);
  assert.ok(!(await raw({ noMessageStop: true })).includes('message_stop'));
});

test('truncation ends the body cleanly after events or bytes', async (t) => {
  const emulator = await start(t, { truncateAfter: 3, pings: 1, comments: true });
  const events = (await stream(emulator, 'x')).filter(({ type }) => type !== 'ping');
  assert.equal(events.length, 3);
  emulator.setKnobs({ truncateBytes: 100 });
  assert.equal((await (await send(emulator, 'x')).arrayBuffer()).byteLength, 100);
  emulator.setKnobs({ truncateBytes: 0 });
  assert.equal((await (await send(emulator, 'x')).arrayBuffer()).byteLength, 0);
});

test('resetAfter delivers the events, then breaks the connection', async (t) => {
  const emulator = await start(t, { resetAfter: 3 });
  const response = await send(emulator, 'x');
  let seen = '';
  await assert.rejects(async () => {
    for await (const bytes of response.body) seen += Buffer.from(bytes).toString();
  });
  assert.equal(seen.match(/^event: /gm).length, 3);
  await emulator.idle();
  assert.equal(emulator.requests[0].aborted, false);
});

test('errorAfter sends an error event', async (t) => {
  const error = { type: 'invalid_request_error', message: 'no' };
  const emulator = await start(t, { errorAfter: { events: 0, error } });
  assert.deepEqual(await stream(emulator, 'x'), [{ type: 'error', error }]);
  emulator.setKnobs({ errorAfter: { events: 3 } });
  const events = await stream(emulator, 'x');
  assert.equal(events.length, 4);
  assert.equal(events[3].error.type, 'overloaded_error');
});

test('a stalled stream is released when the client goes away', async (t) => {
  const emulator = await start(t, { stallAfter: 2, stallPings: 5 });
  const abort = new AbortController();
  const response = await send(emulator, 'x', { signal: abort.signal });
  let seen = '';
  await assert.rejects(async () => {
    for await (const bytes of response.body) {
      seen += Buffer.from(bytes).toString();
      if (seen.includes('ping')) abort.abort();
    }
  });
  assert.ok(!seen.includes('content_block_delta'));
  await emulator.idle();
  assert.equal(emulator.openStreams(), 0);
  assert.equal(emulator.requests[0].aborted, true);
});

test('stalled and hanging answers are released by close', async () => {
  const stalled = [{ times: 1, reply: 'x', knobs: { stallAfter: 0 } }];
  const hanging = [{ times: 1, reply: 'x', knobs: { hangHeaders: true } }];
  const pending = [{ reply: () => new Promise(() => {}) }];
  const emulator = await startEmulator({ rules: [...stalled, ...hanging, ...pending] });
  const first = await send(emulator, 'x');
  const others = [send(emulator, 'x'), send(emulator, 'x')].map((call) => assert.rejects(call));
  while (emulator.requests.length < 3) await new Promise(setImmediate);
  assert.equal(emulator.openStreams(), 1);
  await emulator.close();
  await assert.rejects(first.text());
  await Promise.all(others);
  assert.equal(emulator.openSockets(), 0);
  assert.equal(emulator.openStreams(), 0);
});

test('answers that are no stream', async (t) => {
  const emulator = await start(t, { json: true });
  const json = await send(emulator, 'x');
  assert.equal(json.headers.get('content-type'), 'application/json');
  assert.equal((await json.json()).content[0].text, '北京😀 end');
  emulator.setKnobs({ html: true });
  const html = await send(emulator, 'x');
  assert.equal(html.status, 200);
  assert.match(html.headers.get('content-type'), /text\/html/);
  emulator.setKnobs({ dropConnection: true });
  await assert.rejects(send(emulator, 'x'));
  emulator.setKnobs({
    status: 503,
    error: { message: 'down' },
    headers: { 'x-should-retry': 'false' },
  });
  const down = await send(emulator, 'x');
  assert.equal(down.headers.get('x-should-retry'), 'false');
  assert.deepEqual((await down.json()).error, { type: 'api_error', message: 'down' });
});

test('hugeLine sends a line without an end', async (t) => {
  const emulator = await start(t, { hugeLine: 100_000 });
  const body = await (await send(emulator, 'x')).text();
  const last = body.slice(body.lastIndexOf('\n') + 1);
  assert.ok(last.startsWith('data: ') && last.length > 100_000);
});

test('the more specific knobs win; null switches one off', async (t) => {
  const emulator = await emulatorFor(t, {
    knobs: { status: 500 },
    rules: [
      { when: { user: 'rule' }, knobs: { status: null }, reply: 'ok' },
      {
        when: { user: 'reply' },
        knobs: { status: 503 },
        reply: { text: 'x', knobs: { status: 529 } },
      },
      { reply: 'x' },
    ],
  });
  assert.equal((await message(emulator, 'rule')).content[0].text, 'ok');
  assert.equal((await send(emulator, 'reply')).status, 529);
  assert.equal((await send(emulator, 'x')).status, 500);
});

test('bad knobs are refused', async (t) => {
  const emulator = await start(t, {});
  assert.throws(() => emulator.setKnobs({ splitByte: 1 }), /knobs\.splitByte: unknown knob/);
  assert.throws(() => emulator.setKnobs({ splitBytes: 0 }), /knobs\.splitBytes: must be/);
});

test('a slow reader holds the stream back', async (t) => {
  const emulator = await emulatorFor(t, {
    rules: [{ reply: { text: 'x'.repeat(1000), repeat: 20_000 } }],
    knobs: { textChunk: 1000 },
  });
  const abort = new AbortController();
  const response = await send(emulator, 'x', { signal: abort.signal });
  await response.body.getReader().read();
  await new Promise((resolve) => setTimeout(resolve, 50));
  // 20 MB would be through by now if nobody waited for the reader.
  assert.equal(emulator.openStreams(), 1);
  abort.abort();
  await emulator.idle();
  assert.equal(emulator.openStreams(), 0);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { text } from '../emulator/index.js';
import { chunksOf, errorOf, idleOf, restartsOf, textOf } from './support/gateway-elements.js';
import { gatewayFor, textIn } from './support/gateway.js';

const OVERLOADED = { type: 'overloaded_error', message: 'Overloaded just now' };
const INVALID = { type: 'invalid_request_error', message: 'model: glm is unknown here' };
const ANSWER = text(['Hel', 'lo', ' there']);

/** An error event after so many events; two deltas are out after four. */
const failsAfter = (events, error) => ({ errorAfter: { events, error } });

test('FC-A3 an overload as the first event is repeated and never seen', async (t) => {
  const { emulator, send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: ANSWER, knobs: failsAfter(0, OVERLOADED) }, { reply: ANSWER }],
  });
  const elements = await send('hi');
  assert.equal(textOf(elements), 'Hello there');
  assert.equal(chunksOf(elements).length, 3);
  assert.deepEqual(restartsOf(elements), []);
  assert.equal(elements.filter(({ sessionUpdate }) => sessionUpdate === 'log').length, 0);
  assert.equal(emulator.requests.length, 2);
});

test('FC-A3 an overload before the first delta is repeated and never seen', async (t) => {
  const { send } = await gatewayFor(t, {
    rules: [{ times: 1, reply: ANSWER, knobs: failsAfter(2, OVERLOADED) }, { reply: ANSWER }],
  });
  const elements = await send('hi');
  assert.equal(chunksOf(elements).length, 3);
  assert.deepEqual(restartsOf(elements), []);
});

test('FC-A3 an overload after text voids the text and starts again', async (t) => {
  const { emulator, send, messages } = await gatewayFor(t, {
    rules: [{ times: 1, reply: ANSWER, knobs: failsAfter(4, OVERLOADED) }, { reply: ANSWER }],
  });
  const elements = await send('hi');
  const [restart, ...more] = restartsOf(elements);
  assert.deepEqual(more, []);
  assert.equal(restart.restartReason, 'error_event');
  assert.equal(restart.messageId, chunksOf(elements)[0].messageId);
  assert.equal(textOf(elements), 'Hello there');
  assert.equal(idleOf(elements).stopReason, 'end_turn');
  await send('more');
  assert.equal(textIn(messages(-1)[1]), 'Hello there');
  assert.equal(emulator.requests.length, 3);
});

test("FC-A3 restart: 'never' ends the run with the error and keeps what was shown", async (t) => {
  const { emulator, send, messages } = await gatewayFor(t, {
    rules: [{ times: 1, reply: ANSWER, knobs: failsAfter(4, OVERLOADED) }, { reply: ANSWER }],
    model: { restart: 'never' },
  });
  const elements = await send('hi');
  const error = errorOf(elements);
  assert.equal(error.code, 'E_MODEL_OVERLOADED');
  assert.equal(error.status, 529);
  assert.equal(error.retryable, true);
  assert.equal(error.requestId, emulator.requests[0].id);
  assert.equal(error.details.type, 'overloaded_error');
  assert.match(error.message, /Overloaded just now/);
  assert.equal(idleOf(elements).stopReason, 'error');
  assert.equal(textOf(elements), 'Hello');
  assert.deepEqual(restartsOf(elements), []);
  assert.equal(emulator.requests.length, 1);

  await send('once more');
  assert.doesNotMatch(JSON.stringify(messages(-1)), /Overloaded|overloaded_error/);
});

for (const restart of ['auto', 'never']) {
  test(`FC-A3 a refusal as the first event is not repeated (restart: '${restart}')`, async (t) => {
    const { emulator, send, messages } = await gatewayFor(t, {
      rules: [{ times: 1, reply: ANSWER, knobs: failsAfter(0, INVALID) }, { reply: ANSWER }],
      model: { restart },
    });
    const elements = await send('hi');
    const error = errorOf(elements);
    assert.equal(error.code, 'E_MODEL_REQUEST');
    assert.equal(error.retryable, false);
    assert.equal(error.requestId, emulator.requests[0].id);
    assert.match(error.message, /model: glm is unknown here/);
    assert.equal(textOf(elements), '');
    assert.equal(emulator.requests.length, 1);

    assert.equal(textOf(await send('and now?')), 'Hello there');
    assert.doesNotMatch(JSON.stringify(messages(-1)), /unknown here/);
  });
}

test('FC-A3 the text of a failed attempt is not part of a later request', async (t) => {
  const { send, messages } = await gatewayFor(t, {
    rules: [
      { times: 2, reply: text(['Lost ', 'words']), knobs: failsAfter(4, OVERLOADED) },
      { reply: ANSWER },
    ],
  });
  const elements = await send('hi');
  assert.equal(restartsOf(elements).length, 2);
  await send('more');
  assert.doesNotMatch(JSON.stringify(messages(-1)), /Lost/);
});

const KINDS = {
  rate_limit_error: ['E_MODEL_RATE_LIMIT', 429, true],
  api_error: ['E_MODEL_SERVER', undefined, true],
  timeout_error: ['E_MODEL_SERVER', 504, true],
  authentication_error: ['E_MODEL_AUTH', 401, false],
  permission_error: ['E_MODEL_AUTH', 403, false],
  not_found_error: ['E_MODEL_NOT_FOUND', 404, false],
};

for (const [type, [code, status, retryable]] of Object.entries(KINDS)) {
  test(`FC-A3 the error event ${type} has its code`, async (t) => {
    const { emulator, send } = await gatewayFor(t, {
      rules: [{ reply: ANSWER, knobs: failsAfter(0, { type, message: 'because' }) }],
      model: { maxRetries: 0 },
    });
    const error = errorOf(await send('hi'));
    assert.deepEqual(
      { code: error.code, status: error.status, retryable: error.retryable },
      { code, status, retryable },
    );
    assert.equal(emulator.requests.length, 1);
  });
}

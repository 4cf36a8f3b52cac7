/** D14: the order of answers to `next()`, with a core that answers exactly when told. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RunStream } from '../js/stream.js';
import { deferred } from './support/boundary.js';

const DONE = { value: undefined, done: true };

/** A stream over batches that are given by hand; `null` ends it. */
function streamOf() {
  const batches = [];
  const take = (at) => (batches[at] ??= deferred());
  const given = { next: 0, read: 0, closes: 0, onClose() {} };
  const run = {
    async nextBatch() {
      const batch = await take(given.read++).promise;
      return batch && JSON.stringify(batch);
    },
    async close() {
      given.closes += 1;
      given.onClose();
    },
    rethrow() {},
  };
  const open = () => ({ run: Promise.resolve(run), release() {} });
  const stream = new RunStream(open, (batch) => batch);
  const give = (batch) => take(given.next++).resolve(batch);
  return { stream, give, given };
}

test('a next() after an answered one does not overtake those that wait', async () => {
  const { stream, give } = streamOf();
  const order = [];
  const ask = (name) => stream.next().then(({ value }) => order.push([name, value]));
  const first = ask('first').then(() => ask('late'));
  const waiting = [ask('second'), ask('third')];
  give([1, 2, 3, 4]);
  await Promise.all([first, ...waiting]);
  assert.deepEqual(order, [
    ['first', 1],
    ['second', 2],
    ['third', 3],
    ['late', 4],
  ]);
});

test('answers come in the order of the questions, over many batches', async () => {
  const { stream, give } = streamOf();
  const values = [];
  const ask = () => stream.next().then(({ value }) => values.push(value));
  const asked = Array.from({ length: 6 }, ask);
  give([1]);
  give([2, 3]);
  give([4, 5, 6, 7]);
  give(null);
  await Promise.all(asked);
  await Promise.all([ask(), ask()]);
  assert.deepEqual(values, [1, 2, 3, 4, 5, 6, 7, undefined]);
});

test('after return() a pending next() may get one element; then the stream is done', async () => {
  const { stream, give, given } = streamOf();
  const pending = stream.next();
  await new Promise(setImmediate);
  given.onClose = () => give(['last words', 'idle', 'never']);
  const returned = stream.return();
  const { value } = await pending;
  assert.ok(value === 'last words' || value === undefined);
  assert.deepEqual(await returned, DONE);
  for (let at = 0; at < 3; at += 1) assert.deepEqual(await stream.next(), DONE);
});

test('return() drops what was ready, and closes the run once', async () => {
  const { stream, give, given } = streamOf();
  give([1, 2, 3]);
  assert.deepEqual(await stream.next(), { value: 1, done: false });
  await Promise.all([stream.return(), stream.return()]);
  assert.deepEqual(await stream.next(), DONE);
  assert.equal(given.closes, 1);
});

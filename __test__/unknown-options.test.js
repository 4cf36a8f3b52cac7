/** Options that no call knows are refused by name, before anything happens. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { InvalidConfigError } from '../index.js';
import { assertRefused, errorOf } from './support/boundary.js';
import { gatewayFor } from './support/gateway.js';
import { textOf } from './support/gateway-elements.js';

const refused = async (work, ...words) =>
  assertRefused(await errorOf(work), InvalidConfigError, 'E_INVALID_CONFIG', ...words);

const CALLS = {
  'agent.startSession': ({ agent }, more) => agent.startSession({ userId: 'ann', ...more }),
  'agent.close': ({ agent }, more) => agent.close(more),
  'agent.prompt': ({ agent }, more) => agent.prompt('x', more),
  'session.prompt': ({ session }, more) => session.prompt('x', more),
  'session.send': ({ session }, more) => session.send('x', more).next(),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`unknown options: ${name} refuses one and names it`, async (t) => {
    const gateway = await gatewayFor(t, { rules: 'fine' });
    for (const unknownThing of [1, 'x', false, {}, []]) {
      await refused(() => call(gateway, { unknownThing }), 'unknownThing');
    }
    await refused(() => call(gateway, { '': 1 }));
    assert.equal(gateway.emulator.requests.length, 0);
    // Neither the session nor the agent is spoilt by it.
    assert.equal(textOf(await gateway.send('hi')), 'fine');
  });

  test(`unknown options: ${name} takes undefined for nothing`, async (t) => {
    const gateway = await gatewayFor(t, { rules: 'fine' });
    await call(gateway, { unknownThing: undefined });
    await gateway.session.abort();
  });
}

test('unknown options: an option of another call is unknown', async (t) => {
  const { agent, session } = await gatewayFor(t, { rules: 'fine' });
  await refused(() => agent.startSession({ userId: 'ann', maxTokens: 5 }), 'maxTokens');
  await refused(() => agent.startSession({ userId: 'ann', limits: {} }), 'limits');
  for (const options of [{ userId: 'bob' }, { conversationId: 'other' }, { deadlineMs: 5 }]) {
    const [key] = Object.keys(options);
    await refused(() => session.prompt('x', options), key);
    await refused(() => session.send('x', options).next(), key);
  }
  await refused(() => session.prompt('x', { throwOnError: true }), 'throwOnError');
  await refused(() => agent.prompt('x', { throwOnError: true }), 'throwOnError');
});

test('unknown options: a misspelt part of limits and of models is refused', async (t) => {
  const { agent, session } = await gatewayFor(t, { rules: 'fine' });
  for (const [options, path] of [
    [{ limits: { maxTurn: 1 } }, 'limits.maxTurn'],
    [{ limits: { maxCost: 1, prices: { input: 1, output: 1, in: 1 } } }, 'limits.prices.in'],
    [{ model: { id: 'glm', temprature: 1 } }, 'model.temprature'],
  ]) {
    await refused(() => session.prompt('x', options), path);
    await refused(() => agent.prompt('x', options), path);
    await refused(() => session.send('x', options).next(), path);
  }
});

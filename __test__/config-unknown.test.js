/** Keys that have no meaning, and the warnings of a program. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ENTRY, runModule } from './support/boundary.js';

/** Warnings of a program that creates an agent with more configuration. */
async function warningsFor(config, more = '') {
  const source = `
    import { createAgent } from ${JSON.stringify(ENTRY)};
    const warnings = [];
    process.on('warning', ({ code, message }) => warnings.push({ code, message }));
    const base = { envId: 'e', model: { id: 'glm', apiKey: 'k' } };
    let outcome = 'accepted';
    try {
      createAgent({ ...base, ...${config} });
      ${more}
    } catch (error) {
      outcome = error.code;
    }
    setImmediate(() => console.log(JSON.stringify({ warnings, outcome })));
  `;
  const { code, out, err } = await runModule(source, { flags: ['--no-warnings'] });
  assert.equal(code, 0, err);
  return JSON.parse(out);
}

test('unknown keys: one warning that names them all, and the agent is made', async () => {
  const { warnings, outcome } = await warningsFor(
    "{ sytemPrompt: 'x', colour: 1, undef: undefined }",
  );
  assert.equal(outcome, 'accepted');
  assert.equal(warnings.length, 1);
  assert.equal(warnings[0].code, 'OAK_UNKNOWN_SETTINGS');
  assert.match(warnings[0].message, /sytemPrompt/);
  assert.match(warnings[0].message, /colour/);
});

test('known keys make no warning', async () => {
  const { warnings } = await warningsFor(
    "{ name: 'x', metadata: { anything: { goes: 1 } }, mcpServers: { any: { command: 'x' } } }",
  );
  assert.deepEqual(warnings, []);
});

for (const [path, config] of [
  ['limits.maxTurn', '{ limits: { maxTurn: 3 } }'],
  ['endpoints.gatway', "{ endpoints: { gatway: 'https://x.test' } }"],
  ['model.temprature', "{ model: { id: 'glm', temprature: 1 } }"],
  ['permissions.requireAproval', "{ permissions: { requireAproval: 'x' } }"],
  ['session.databse', "{ session: { databse: 'memory' } }"],
  ['mcpServers.weather.comand', "{ mcpServers: { weather: { command: 'x', comand: 'y' } } }"],
  ['mcpServers.weather.headers', "{ mcpServers: { weather: { command: 'x', headers: {} } } }"],
  ['limits.prices.inputt', '{ limits: { prices: { input: 1, output: 1, inputt: 2 } } }'],
]) {
  test(`a misspelt ${path} is warned of or refused, never ignored`, async () => {
    const { warnings, outcome } = await warningsFor(config);
    const isWarned = warnings.some(({ message }) => message.includes(path));
    assert.ok(isWarned || outcome !== 'accepted', JSON.stringify(warnings));
  });
}

test('a misspelt hook is warned of or refused, never ignored', async () => {
  const { warnings, outcome } = await warningsFor('{ hooks: { onToolBegin() {} } }');
  const isWarned = warnings.some(({ message }) => message.includes('onToolBegin'));
  assert.ok(isWarned || outcome !== 'accepted');
});

test('a key that looks like something else does not break', async () => {
  const config = '{ "": 1, "__proto__x": 1, "a\\nb": 1, "toString": 5, "0": 1, "constructor": 1 }';
  const { outcome, warnings } = await warningsFor(config);
  assert.equal(outcome, 'accepted');
  assert.equal(warnings.length, 1);
});

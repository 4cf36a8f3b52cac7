import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { ModelError } from '../index.js';
import { checkStream } from './support/gateway-elements.js';
import { UPDATES, normalised, readGoldens, writeGoldens } from './support/format-goldens.js';
import { TURNS, runTurn } from './support/format-turns.js';

const FORMATS = ['acp', 'acp-v1', 'acp-jsonrpc', 'events'];
/** Field names that only the default format has. */
const ALIASES = ['input', 'result', 'error', 'parentToolCallId'];

/** What holds in each format whatever the turn is. */
const RULES = {
  acp: checkStream,
  'acp-v1': (elements) => checkStream(elements),
  'acp-jsonrpc': (elements) => {
    for (const { jsonrpc, method, params, ...more } of elements) {
      assert.deepEqual([jsonrpc, method, params.sessionId], ['2.0', 'session/update', 'conv_1']);
      assert.deepEqual(more, {});
    }
    checkStream(elements.map(({ params }) => params.update));
  },
  events: (elements) => {
    const ends = elements.filter(({ type }) => type === 'session_idle');
    assert.deepEqual(ends, [elements.at(-1)], 'session_idle comes once, as the last');
    assert.ok(elements.every((element) => element.restart === undefined));
    for (const { type, error } of elements) {
      if (type !== 'error') continue;
      assert.ok(error instanceof ModelError);
      assert.ok(error instanceof Error);
      assert.match(error.stack, /ModelError|Error/);
    }
  },
};

for (const format of FORMATS) {
  const goldens = UPDATES ? {} : readGoldens(format);
  for (const name of Object.keys(TURNS)) {
    test(`golden: ${name} in the format '${format}'`, async (t) => {
      const elements = await runTurn(t, name, { streamFormat: format });
      RULES[format](elements);
      if (UPDATES) goldens[name] = normalised(elements);
      assert.deepEqual(normalised(elements), goldens[name]);
    });
  }
  after(() => UPDATES && writeGoldens(format, goldens));
}

test('golden: the default format is acp', async (t) => {
  const elements = await runTurn(t, 'a failing tool', {});
  const told = await runTurn(t, 'a failing tool', { streamFormat: 'acp' });
  assert.deepEqual(normalised(elements), normalised(told));
});

test("golden: 'acp-v1' is 'acp' without its aliases", { skip: UPDATES }, () => {
  const [acp, v1] = ['acp', 'acp-v1'].map(readGoldens);
  for (const [name, elements] of Object.entries(acp)) {
    assert.deepEqual(elements.map(withoutAliases), v1[name]);
  }
});

test("golden: 'acp-jsonrpc' is 'acp-v1' in envelopes", { skip: UPDATES }, () => {
  const [v1, rpc] = ['acp-v1', 'acp-jsonrpc'].map(readGoldens);
  for (const [name, elements] of Object.entries(rpc)) {
    assert.deepEqual(
      elements.map(({ params }) => params.update),
      v1[name],
    );
  }
});

function withoutAliases(element) {
  if (!element.sessionUpdate.startsWith('tool_call')) return element;
  return Object.fromEntries(Object.entries(element).filter(([key]) => !ALIASES.includes(key)));
}

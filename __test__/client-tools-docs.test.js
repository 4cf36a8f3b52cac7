/** The program in docs/client-tools.md, as it stands there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { toolCall } from '../emulator/index.js';
import { runModule } from './support/boundary.js';
import { storedAgents, temporaryFolder } from './support/sessions.js';

test('the program of the chapter runs', async (t) => {
  const path = join(temporaryFolder(t), 'sessions.db');
  const option = (label) => ({ label, description: label });
  const question = {
    question: 'In which unit?',
    header: 'Unit',
    options: [option('Celsius'), option('Kelvin')],
    multiSelect: false,
  };
  const { emulator } = await storedAgents(t, undefined, {
    rules: [
      { when: { toolResult: 'Celsius' }, reply: 'It is 20 degrees in Beijing.' },
      {
        when: { toolResult: 'Beijing' },
        reply: toolCall('AskUserQuestion', { questions: [question] }),
      },
      { reply: toolCall('get_location', {}) },
    ],
  });
  const text = readFileSync(new URL('../docs/client-tools.md', import.meta.url), 'utf8');
  const [, program] = /```ts\n(.*?)```/s.exec(text);
  const source = program.replace('./data/sessions.db', path);
  const env = { OAK_EMULATOR_HUB: emulator.url, TCB_API_KEY: emulator.apiKey };
  const { code, out, err } = await runModule(source, { env });
  assert.deepEqual({ code, out }, { code: 0, out: 'It is 20 degrees in Beijing.' }, err);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { USES_CLOUDBASE, runExample } from './support/examples.js';

/** What was said, given to the tool and by it; and the key. */
const CONTENT = ['weather in Beijing', 'Beijing', 'time for a walk', 'sunny', 'emulator-key'];

test(
  'telemetry: the debug example tells what happens, without content',
  { skip: USES_CLOUDBASE },
  async () => {
    const { stdout, stderr } = await runExample('02-debug.ts', { OAK_DEBUG: '1' });
    for (const words of [
      /^options$/m,
      / {2}model +glm-5\.1/,
      / {2}key +given/,
      /stream +agent_phase preparing/,
      /stream +agent_thought_chunk \d+ characters/,
      /stream +agent_message_chunk \d+ characters/,
      /stream +tool_call get_weather in_progress/,
      /stream +tool_call_update completed/,
      /stream +agent_phase idle end_turn/,
      /log +debug \[engine\] request was answered/,
      /metric +gen_ai\.client\.token\.usage \d+ \{token\}/,
      /span +chat glm-5\.1 \d+ ms/,
      /span +execute_tool get_weather \d+ ms/,
      /span +invoke_agent debug \d+ ms/,
    ]) {
      assert.match(stdout, words);
    }
    assert.match(stderr, /^\[oak\]\[engine\] /m);
    for (const text of CONTENT) assert.ok(!`${stdout}${stderr}`.includes(text), text);
  },
);

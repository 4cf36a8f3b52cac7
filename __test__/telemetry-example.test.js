import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { promisify } from 'node:util';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TIME_MS = 120_000;
/** With this file the examples talk to CloudBase. */
const USES_CLOUDBASE = existsSync(new URL('../examples/config.local.json', import.meta.url));
/** What was said, given to the tool and by it; and the key. */
const CONTENT = ['weather in Beijing', 'Beijing', 'time for a walk', 'sunny', 'emulator-key'];

/** Node.js 22 reads TypeScript by itself. */
function loaderFlags() {
  return Number(process.versions.node.split('.')[0]) < 22 ? ['--import', 'tsx'] : [];
}

test(
  'telemetry: the debug example tells what happens, without content',
  { skip: USES_CLOUDBASE },
  async () => {
    const args = [...loaderFlags(), 'examples/02-debug.ts'];
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, OAK_DEBUG: '1' };
    const options = { cwd: ROOT, env, timeout: TIME_MS };
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, options);
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

/**
 * Runs the examples. Without `examples/config.local.json` each starts an emulator of its own.
 *
 *   node scripts/examples.js [prefix ...]   e.g. `01`; without one: all
 *
 * An example that needs more than that says so in a comment line
 * `Needs: VARIABLE [VARIABLE ...]`; it is skipped while one of these is not set.
 *
 * @module
 */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { build } from './build.js';
import { oracleBin } from './oracle.js';
import { ScriptError, root, run, script } from './run.js';

const FOLDER = join(root, 'examples');
const TIMEOUT_MS = 120_000;

function select(prefixes) {
  const names = readdirSync(FOLDER).filter((name) => /^\d\d[a-z]?-.*\.ts$/.test(name));
  const chosen = names.filter(
    (name) => prefixes.length === 0 || prefixes.some((prefix) => name.startsWith(prefix)),
  );
  if (chosen.length === 0) throw new ScriptError(`no such example: ${prefixes.join(' ')}`);
  return chosen.sort();
}

function missing(name) {
  const [, variables = ''] =
    /^\W*Needs:(.*)$/m.exec(readFileSync(join(FOLDER, name), 'utf8')) ?? [];
  return variables.match(/\w+/g)?.filter((variable) => !process.env[variable]) ?? [];
}

function runExample(name) {
  const args = ['--import', 'tsx', join('examples', name)];
  const env = { ...serverOf(name), ...process.env };
  return run(process.execPath, args, { env, shell: false, timeout: TIMEOUT_MS });
}

/** The server that an example would have `npx` fetch each time. */
function serverOf(name) {
  if (!name.startsWith('07-')) return {};
  return { EVERYTHING_SERVER: oracleBin('mcp-servers', 'mcp-server-everything') };
}

await script(async () => {
  const names = select(process.argv.slice(2));
  await build();
  const failed = names.filter((name) => {
    const variables = missing(name);
    process.stdout.write(
      variables.length ? `> ${name}: skipped, needs ${variables.join(', ')}\n` : `> ${name}\n`,
    );
    return variables.length === 0 && runExample(name) !== 0;
  });
  if (failed.length) throw new ScriptError(`failed: ${failed.join(', ')}`);
});

/**
 * Kills processes in the middle of their work and shows that nothing is lost or done twice:
 *
 *   npm run crash -- --scenario turn --driver file|sqlite|pgsql --kills <n> [--seed <n>] [--no-build]
 *
 * @module
 */
import { parseArgs } from 'node:util';

import { build } from './build.js';
import { ScriptError, script } from './run.js';

const DEFAULT_KILLS = '100';

/** A transcript that a kill has damaged is read in part, which the package says as a warning. */
function silenceDamage() {
  const [print] = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.code !== 'OAK_STORE_DAMAGE') print(warning);
  });
}

await script(async () => {
  silenceDamage();
  const { values } = parseArgs({
    options: {
      scenario: { type: 'string', default: 'turn' },
      driver: { type: 'string', default: 'sqlite' },
      kills: { type: 'string', default: DEFAULT_KILLS },
      seed: { type: 'string', default: String(Date.now() % 1e9) },
      // For callers that have built it.
      'no-build': { type: 'boolean', default: false },
    },
  });
  if (!values['no-build']) await build();
  // They load the addon.
  const [{ runHarness }, { report }, options] = await Promise.all([
    import('../crash/harness.js'),
    import('../crash/report.js'),
    checked(values),
  ]);
  const { lines, ok } = report(await runHarness(options, (line) => console.log(line)));
  console.log(lines.join('\n'));
  return ok ? 0 : 1;
});

async function checked({ scenario, driver, kills, seed }) {
  const [{ SCENARIOS }, { DATABASES }] = await Promise.all([
    import('../crash/scenarios.js'),
    import('../crash/databases.js'),
  ]);
  requireOne('--scenario', scenario, SCENARIOS);
  requireOne('--driver', driver, DATABASES);
  return { scenario, driver, kills: number('--kills', kills), seed: number('--seed', seed) };
}

function requireOne(option, value, table) {
  if (Object.hasOwn(table, value)) return;
  throw new ScriptError(`${option} ${value}: use one of ${Object.keys(table).join(', ')}`);
}

function number(option, text) {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new ScriptError(`${option} ${text}: use a number above 0`);
}

/**
 * Everything that judges the source without running it. Runs all checks, then says which failed.
 *
 * @module
 */
import { cargoEnv, devFeatures, requireCargo } from './cargo.js';
import { oracleBin } from './oracle.js';
import { run, script } from './run.js';

const CHECKS = {
  rustfmt: () => cargo('fmt', '--check'),
  clippy: () => cargo('clippy', '--quiet', '--all-targets', ...devFeatures, '--', '-D', 'warnings'),
  eslint: () => tool('eslint', '--max-warnings', '0', '.'),
  prettier: () => tool('prettier', '--check', '--log-level', 'warn', '.'),
};

function cargo(...args) {
  return run('cargo', args, { env: cargoEnv });
}

function tool(bin, ...args) {
  return run(oracleBin('tooling', bin), args);
}

await script(() => {
  requireCargo();
  const failed = Object.keys(CHECKS).filter((name) => {
    process.stdout.write(`> ${name}\n`);
    return CHECKS[name]() !== 0;
  });
  process.stdout.write(failed.length ? `lint: failed: ${failed.join(', ')}\n` : 'lint: ok\n');
  return failed.length ? 1 : 0;
});

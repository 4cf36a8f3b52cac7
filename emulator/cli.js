#!/usr/bin/env node
import { HELP, UsageError, readArgs } from './cli/args.js';
import { runCommand } from './cli/exec.js';
import { startEmulator } from './index.js';

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  const line = error.message.replace(/\s*\n\s*/g, ' ');
  process.stderr.write(`oak-emulator: ${line} (try: oak-emulator --help)\n`);
  process.exitCode = 2;
}

async function main(argv) {
  const { help, json, exitOnStdinEnd, command, options } = readArgs(argv);
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const emulator = await start(options);
  try {
    if (command) return await run(command, emulator);
    announce(emulator, json);
    await untilStopped(exitOnStdinEnd);
    return 0;
  } finally {
    await emulator.close();
  }
}

async function start(options) {
  try {
    return await startEmulator(options);
  } catch (error) {
    // Bad options, rules and knobs and a port that cannot be bound are the caller's to mend.
    if (error instanceof TypeError || error instanceof RangeError || error.syscall) {
      throw new UsageError(error.message);
    }
    throw error;
  }
}

async function run(command, emulator) {
  const code = await runCommand(command, emulator);
  const { length } = emulator.violations;
  if (length > 0) {
    const [{ rule, message }] = emulator.violations;
    process.stderr.write(`oak-emulator: ${length} invalid requests, first: ${rule}: ${message}\n`);
  }
  return code;
}

function announce({ url, gatewayUrl, apiKey, envId, everywhere }, json) {
  if (json) {
    process.stdout.write(`${JSON.stringify({ url, gatewayUrl, apiKey, envId })}\n`);
    return;
  }
  process.stdout.write(
    `oak-emulator is listening on ${url}${everywhere ? ' (it listens on all addresses)' : ''}
  gateway: ${gatewayUrl}
  use it:  OAK_EMULATOR_HUB=${url} TCB_API_KEY=${apiKey ?? 'any'} node your-agent.js
  log:     ${url}/_emulator/requests
Stop with Ctrl-C.
`,
  );
}

function untilStopped(exitOnStdinEnd) {
  return new Promise((resolve) => {
    process.once('SIGINT', resolve);
    process.once('SIGTERM', resolve);
    if (exitOnStdinEnd) process.stdin.once('end', resolve).once('error', resolve).resume();
  }).finally(() => {
    // A pipe that is still open would keep the process alive.
    if (exitOnStdinEnd) process.stdin.destroy();
  });
}

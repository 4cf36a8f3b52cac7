import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string' },
  rules: { type: 'string' },
  knobs: { type: 'string' },
  'api-key': { type: 'string' },
  'env-id': { type: 'string' },
  'no-validate': { type: 'boolean' },
  json: { type: 'boolean' },
  'exit-on-stdin-end': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
};

export const HELP = `Usage:
  oak-emulator [options]
  oak-emulator exec [options] -- <command> [arguments]

Starts a local model gateway with a scripted model.

Options:
  --port <n>            port to listen on (default: a free one)
  --host <name>         address to listen on (default: 127.0.0.1; 0.0.0.0 or :: for all)
  --rules <file.json>   script of the model (default: a small built-in one)
  --knobs <json>        network behaviour, e.g. '{"chunkDelayMs":20}'
  --api-key <key>       key that clients must send (default: emulator-key; "" switches it off)
  --env-id <id>         environment id that the hub reports (default: emulator-env)
  --no-validate         record invalid requests, but answer them
  --json                first line of output is one JSON object {url, gatewayUrl, apiKey, envId}
  --exit-on-stdin-end   stop when standard input ends (for use as a child process)
  -h, --help            show this text

exec starts an emulator on a free port, runs the command with OAK_EMULATOR_HUB and TCB_API_KEY
set, and exits with the command's code.
`;

/** A mistake of the caller: reported without a stack, exit code 2. */
export class UsageError extends Error {}

/**
 * Reads the command line.
 *
 * @param {string[]} argv without node and script
 * @returns {{ help: boolean, json: boolean, exitOnStdinEnd: boolean, command: string[] | null,
 *   options: object }}
 * @throws {UsageError}
 */
export function readArgs(argv) {
  const runs = argv[0] === 'exec';
  const end = runs ? argv.indexOf('--') : -1;
  const own = argv.slice(runs ? 1 : 0, end < 0 ? undefined : end);
  const values = parse(own);
  const command = runs ? (end < 0 ? [] : argv.slice(end + 1)) : null;
  if (!values.help && command?.length === 0) {
    throw new UsageError('exec needs a command: oak-emulator exec -- <command>');
  }
  return {
    help: values.help === true,
    json: values.json === true,
    exitOnStdinEnd: values['exit-on-stdin-end'] === true,
    command,
    options: emulatorOptions(values),
  };
}

function parse(args) {
  try {
    return parseArgs({ args, options: OPTIONS, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(error.message);
  }
}

function emulatorOptions(values) {
  const options = {};
  if (values.port !== undefined) options.port = readPort(values.port);
  if (values.host !== undefined) options.host = values.host;
  if (values['api-key'] !== undefined) options.apiKey = values['api-key'] || null;
  if (values['env-id'] !== undefined) options.envId = values['env-id'];
  if (values['no-validate']) options.validate = false;
  if (values.rules !== undefined) options.rules = readRules(values.rules);
  if (values.knobs !== undefined) options.knobs = readJson('--knobs', values.knobs);
  return options;
}

function readPort(value) {
  const port = Number(value);
  if (/^\d+$/.test(value) && port <= 65_535) return port;
  throw new UsageError(
    `--port: "${value}" is not a port number; give one from 0 to 65535, 0 for a free one`,
  );
}

function readRules(file) {
  let content;
  try {
    content = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`--rules: ${error.message}`);
  }
  return readJson(`--rules ${file}`, content);
}

function readJson(flag, content) {
  try {
    return JSON.parse(content);
  } catch (error) {
    throw new UsageError(`${flag}: not JSON: ${error.message}`);
  }
}

const PREFIX = '/_emulator/';

/**
 * Lets tests in other processes look into the emulator and steer it: `/_emulator/…`.
 *
 * @param {import('./exchange.js').Exchange} exchange
 * @param {object} emulator the public emulator object
 * @returns {Promise<boolean>} whether the path was one of these
 */
export async function handleAdmin(exchange, emulator) {
  if (!exchange.pathname.startsWith(PREFIX)) return false;
  const action = `${exchange.request.method} ${exchange.pathname.slice(PREFIX.length)}`;
  if (!Object.hasOwn(ACTIONS, action)) {
    const known = Object.keys(ACTIONS).join(', ');
    exchange.sendError(404, 'not_found_error', `no such emulator action; known: ${known}`);
    return true;
  }
  const body = await exchange.readBody();
  if (body === null) return true;
  try {
    const value = body.length > 0 ? JSON.parse(body.toString('utf8')) : null;
    exchange.sendJson(200, ACTIONS[action](emulator, value));
  } catch (error) {
    exchange.sendError(400, 'invalid_request_error', error.message);
  }
  return true;
}

const ACTIONS = {
  'GET requests': (emulator) => emulator.requests,
  'GET violations': (emulator) => emulator.violations,
  'GET state': (emulator) => ({
    openSockets: emulator.openSockets(),
    openStreams: emulator.openStreams(),
    requests: emulator.requests.length,
    violations: emulator.violations.length,
  }),
  'POST rules': (emulator, value) => {
    emulator.setRules(value);
    return { ok: true };
  },
  'POST knobs': (emulator, value) => {
    emulator.setKnobs(value ?? {});
    return { ok: true };
  },
  'POST reset': (emulator) => {
    emulator.reset();
    return { ok: true };
  },
};

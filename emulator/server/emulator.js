import { defaultRules } from '../default-rules.js';
import { Gateway } from '../gateway/gateway.js';
import { ScriptedModel } from '../model/scripted-model.js';
import { checkKnobs } from '../stream/knobs.js';
import { reachable } from './address.js';
import { handleAdmin } from './admin.js';
import { HttpHost } from './http-host.js';
import { checkOptions } from './options.js';
import { RequestLog } from './request-log.js';

const GATEWAY_PATH = '/v1/ai/cloudbase';
/** Fixed and obviously fake, so that nobody takes them for a leak. */
const CREDENTIALS = { secretId: 'emulator-secret-id', secretKey: 'emulator-secret-key' };

/**
 * Starts a local gateway with a scripted model.
 *
 * @param {import('../index.d.ts').EmulatorOptions} [options]
 * @returns {Promise<import('../index.d.ts').Emulator>}
 */
export async function startEmulator(options = {}) {
  checkOptions(options);
  const emulator = new Emulator(options);
  await emulator.listen(options.port ?? 0, options.host ?? '127.0.0.1');
  return emulator;
}

class Emulator {
  #log;
  #model;
  #gateway;
  #host;
  #start;
  #knobs;

  constructor({
    rules = defaultRules,
    knobs = {},
    apiKey = 'emulator-key',
    envId = 'emulator-env',
    recordRequests = true,
    validate = true,
  }) {
    this.apiKey = apiKey;
    this.envId = envId;
    this.#start = { rules, knobs };
    this.#log = new RequestLog(recordRequests);
    this.#model = new ScriptedModel(rules);
    this.setKnobs(knobs);
    this.#gateway = new Gateway({
      model: this.#model,
      log: this.#log,
      apiKey,
      knobs: () => this.#knobs,
      refuses: validate,
    });
    this.#host = new HttpHost((exchange) => this.#route(exchange));
  }

  get requests() {
    return this.#log.requests;
  }

  get violations() {
    return this.#log.violations;
  }

  openSockets() {
    return this.#host.openSockets;
  }

  openStreams() {
    return this.#gateway.openStreams;
  }

  setRules(rules) {
    this.#model.setRules(rules ?? this.#start.rules);
  }

  setKnobs(knobs) {
    checkKnobs(knobs);
    this.#knobs = knobs;
  }

  reset() {
    this.#log.clear();
    this.#model.memory.clear();
    this.setRules(this.#start.rules);
    this.setKnobs(this.#start.knobs);
  }

  idle() {
    return this.#host.idle();
  }

  close() {
    return this.#host.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  async listen(port, host) {
    const bound = await this.#host.listen(port, host);
    const { url, everywhere } = reachable(host, bound);
    this.url = url;
    this.everywhere = everywhere;
    this.gatewayUrl = this.url + GATEWAY_PATH;
  }

  async #route(exchange) {
    const { pathname } = exchange;
    if (await handleAdmin(exchange, this)) return;
    if (pathname === '/') return this.#sendHub(exchange);
    if (pathname.startsWith(GATEWAY_PATH)) {
      return this.#gateway.handle(exchange, pathname.slice(GATEWAY_PATH.length));
    }
    exchange.sendError(404, 'not_found_error', `nothing is served at ${pathname}`);
  }

  #sendHub(exchange) {
    exchange.sendJson(200, {
      endpoints: { gateway: this.gatewayUrl },
      envId: this.envId,
      credentials: CREDENTIALS,
      apiKey: this.apiKey,
    });
  }
}

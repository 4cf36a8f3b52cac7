/**
 * Where the examples find their agent's environment.
 *
 * With `examples/config.local.json` (a copy of `config.example.json`) they talk to CloudBase; without
 * it a local emulator with a scripted model is started, so that they run without keys and network.
 */
import { existsSync, readFileSync } from 'node:fs';

import type { ModelSpec } from '@cloudbase/open-agent-kernel';
import { startEmulator, type Rule } from '@cloudbase/open-agent-kernel/testing';

/** What an example needs to create an agent. */
export interface ExampleEnv {
  envId: string;
  model: ModelSpec;
  /** Where the answers come from, for people to read. */
  source: string;
  /** Frees what was started. */
  close(): Promise<void>;
}

interface ExampleConfig {
  envId?: string;
  model?: string;
  tcbApiKey?: string;
}

const CONFIG = new URL('../config.local.json', import.meta.url);
const DEFAULT_MODEL = 'glm-5.1';

/** Reads the configuration, or starts an emulator; `script` is what its model says. */
export async function loadEnv(script?: Rule[]): Promise<ExampleEnv> {
  return existsSync(CONFIG) ? fromConfig() : fromEmulator(script);
}

function fromConfig(): ExampleEnv {
  const config = JSON.parse(readFileSync(CONFIG, 'utf8')) as ExampleConfig;
  const { envId, tcbApiKey, model = DEFAULT_MODEL } = config;
  if (!envId || !tcbApiKey) {
    throw new Error('examples/config.local.json needs envId and tcbApiKey');
  }
  return {
    envId,
    model: { id: model, apiKey: tcbApiKey },
    source: `${model} in ${envId}`,
    close: async () => {},
  };
}

async function fromEmulator(rules?: Rule[]): Promise<ExampleEnv> {
  const emulator = await startEmulator({ rules, knobs: { chunkDelayMs: 20 } });
  return {
    envId: emulator.envId,
    model: {
      id: DEFAULT_MODEL,
      apiBaseUrl: emulator.gatewayUrl,
      apiKey: emulator.apiKey ?? undefined,
    },
    source: 'the local emulator (no config.local.json)',
    close: () => emulator.close(),
  };
}

/**
 * The other programs that do what the kernel does, at least in part: what is needed to run them.
 *
 * @module
 */
import {
  chownSync,
  copyFileSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { oracle } from '../../scripts/oracle.js';
import { withContenders } from '../contender.js';

/**
 * @typedef {object} Prepared
 * @property {Record<string, string>} modules packages by name: the URL to import
 * @property {{ file: string, home: string, user?: { uid: number, gid: number } }} [program]
 *   what the peer starts, where it may write, and as whom
 *
 * @typedef {object} Peer
 * @property {string} name of its oracle
 * @property {string} module of the contender
 * @property {string} title packages and versions
 * @property {boolean} slow takes so long that a few samples must do
 * @property {Prepared} [prepared]
 * @property {string} [missing] why it cannot run here
 */

/** The engine before this kernel. */
export const OLD_ENGINE = 'claude-agent-sdk';

const PEERS = [
  { name: 'anthropic-sdk', packages: ['@anthropic-ai/sdk'] },
  { name: 'ai-sdk', packages: ['ai', '@ai-sdk/anthropic'] },
  { name: OLD_ENGINE, packages: ['@anthropic-ai/claude-agent-sdk'], slow: true, hasProgram: true },
];

/** How long a peer may take until it answers for the first time. */
const TRY_MS = 60_000;

/** `nobody`: the engine before this kernel refuses to work for root. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/**
 * Installs the peers that are not installed yet, and tries each.
 *
 * @param {{ gatewayUrl: string, apiKey: string }} gateway
 * @returns {Promise<Peer[]>}
 */
export async function preparePeers(gateway) {
  const peers = [];
  for (const { name, packages, slow = false, hasProgram } of PEERS) {
    const peer = { name, module: `peers/${name}`, title: packages.join(' + '), slow };
    try {
      Object.assign(peer, prepare(name, packages, hasProgram));
      await tryOut(peer.module, { ...gateway, peer: peer.prepared });
    } catch (error) {
      peer.missing = error.message.split('\n')[0];
    }
    peers.push(peer);
  }
  return peers;
}

/** One send, for a peer that is installed but does not work here. */
function tryOut(module, gateway) {
  return withContenders({ [module]: gateway }, async ({ [module]: contender }) => {
    const answer = contender.run('firstChunks', { samples: 0 });
    const late = sleep(TRY_MS, 'late', { ref: false });
    if ((await Promise.race([answer, late])) === 'late') {
      throw new Error(`no answer in ${TRY_MS / 1_000} s`);
    }
  });
}

function prepare(name, packages, hasProgram) {
  const folder = join(oracle(name), 'node_modules');
  const manifests = packages.map((each) => readManifest(join(folder, each)));
  const modules = manifests.map((each) => [each.name, entry(join(folder, each.name), each)]);
  const prepared = { modules: Object.fromEntries(modules) };
  if (hasProgram) prepared.program = prepareProgram(folder, packages[0]);
  const title = manifests.map((each) => `${each.name} ${each.version}`).join(' + ');
  return { title, prepared };
}

function readManifest(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
}

/** What `import` loads; Node resolves names only from where the importing file is. */
function entry(folder, { exports }) {
  let target = exports['.'];
  while (typeof target !== 'string') target = target.import ?? target.default;
  return pathToFileURL(join(folder, target)).href;
}

/** The program of this platform, and a home for it. */
function prepareProgram(folder, name) {
  const [scope, prefix] = name.split('/');
  const found = readdirSync(join(folder, scope), { recursive: true }).find(
    (path) => path.startsWith(`${prefix}-`) && /[/\\]claude(\.exe)?$/.test(path),
  );
  if (!found) throw new Error(`it has no program for ${process.platform}-${process.arch}`);
  const file = join(folder, scope, found);
  const home = mkdtempSync(join(tmpdir(), 'oak-bench-'));
  process.once('exit', () => rmSync(home, { recursive: true, force: true }));
  if (process.getuid?.() !== 0) return { file, home };
  chownSync(home, NOBODY.uid, NOBODY.gid);
  return { file: place(file, join(home, 'claude')), home, user: NOBODY };
}

/** Another name for a file that lies where only root may go. */
function place(from, to) {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
  return to;
}

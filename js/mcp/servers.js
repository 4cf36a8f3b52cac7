/**
 * Prepares `config.mcpServers` for the core.
 *
 * @module
 */
import { isPlain, ownFields, read } from '../plain.js';
import { join } from './connection.js';
import { isObject } from './json-rpc.js';

/**
 * @param {unknown} servers
 * @returns {unknown} the same servers, with functions in the place of server objects; anything of a
 *   wrong shape is left for the core to refuse
 */
export function prepareMcpServers(servers) {
  if (!isRecord(servers)) return servers;
  const fields = ownFields(servers, 'config.mcpServers');
  return Object.fromEntries(
    Object.entries(fields).map(([name, server]) => [
      name,
      prepareServer(server, `config.mcpServers.${name}`),
    ]),
  );
}

function isRecord(value) {
  return isObject(value) && !Array.isArray(value) && isPlain(value);
}

function prepareServer(server, path) {
  if (!isRecord(server)) return server;
  const fields = ownFields(server, path);
  if (fields.type !== 'sdk' || !isObject(fields.instance)) return fields;
  return { ...fields, instance: prepareInstance(fields.instance, `${path}.instance`) };
}

/** Any make of server: what counts is what it can do. */
function prepareInstance(instance, path) {
  const isServer = ['connect', 'close'].every(
    (name) => typeof read(instance, name, path) === 'function',
  );
  return isServer ? linksTo(instance) : {};
}

/**
 * The functions by which the core talks to a server object. The core numbers its links.
 *
 * @param {object} instance
 */
export function linksTo(instance) {
  const links = new Map();
  return {
    open: async ({ link }, signal) => {
      const client = await join(instance, signal);
      if (signal.aborted) client.leave();
      else links.set(link, client);
    },
    send: ({ link, frame }) => {
      const client = links.get(link);
      if (!client) throw new Error('the connection is closed');
      client.send(frame);
    },
    receive: ({ link }, signal) => links.get(link)?.receive(signal) ?? null,
    close: ({ link }) => {
      links.get(link)?.leave();
      links.delete(link);
    },
  };
}

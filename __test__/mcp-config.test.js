/** What `config.mcpServers` accepts, refuses and warns about. Nothing is started. */
import { test } from 'node:test';

import { InvalidConfigError, NotImplementedError, createAgent } from '../index.js';
import { assertRefused, errorOf, offline } from './support/boundary.js';

const withServer = (server) => offline({ mcpServers: { weather: server } });
const refused = async (server, ...words) =>
  assertRefused(
    await errorOf(() => createAgent(withServer(server))),
    InvalidConfigError,
    'E_INVALID_CONFIG',
    ...words,
  );

const STDIO = { command: 'server' };
const HTTP = { type: 'http', url: 'https://mcp.test/mcp' };

test('servers of every kind are accepted', () => {
  const accepted = [
    STDIO,
    { ...STDIO, type: 'stdio', args: ['--port', '1'], env: { TOKEN: 'x', EMPTY: '' }, cwd: '/' },
    { ...STDIO, args: [], idleMs: 0, timeout: 10, alwaysLoad: true, trusted: true },
    { ...STDIO, args: null, env: null, cwd: null, timeout: null, tools: null },
    HTTP,
    { ...HTTP, headers: { authorization: 'Bearer x', 'x-empty': '' }, timeout: 1500.5 },
    { ...HTTP, type: 'sse', url: 'http://127.0.0.1:1/sse', tools: [] },
    { ...HTTP, tools: [{ name: 'a', permission_policy: 'always_deny' }, { name: 'b' }] },
  ];
  for (const server of accepted) createAgent(withServer(server));
});

const WRONG = [
  ['command', { command: 5 }],
  ['command', { command: 'a\0b' }],
  ['args', { ...STDIO, args: 'x' }],
  ['args', { ...STDIO, args: ['x', 5] }],
  ['args', { ...STDIO, args: ['a\0b'] }],
  ['env', { ...STDIO, env: 'x' }],
  ['env.TOKEN', { ...STDIO, env: { TOKEN: 5 } }],
  ['env.TOKEN', { ...STDIO, env: { TOKEN: 'a\0b' } }],
  ['env.A=B', { ...STDIO, env: { 'A=B': 'x' } }],
  ['cwd', { ...STDIO, cwd: 5 }],
  ['cwd', { ...STDIO, cwd: '' }],
  ['idleMs', { ...STDIO, idleMs: -1 }],
  ['idleMs', { ...STDIO, idleMs: 1.5 }],
  ['timeout', { ...STDIO, timeout: '60' }],
  ['timeout', { ...STDIO, timeout: -1 }],
  ['alwaysLoad', { ...STDIO, alwaysLoad: 'yes' }],
  ['trusted', { ...STDIO, trusted: 1 }],
  ['url', { ...HTTP, url: 'mcp.test' }],
  ['url', { ...HTTP, url: 'ftp://mcp.test' }],
  ['url', { ...HTTP, url: 'file:///etc/passwd' }],
  ['url', { ...HTTP, url: 'https://me:password@mcp.test' }],
  ['headers', { ...HTTP, headers: [] }],
  ['headers.x', { ...HTTP, headers: { x: 5 } }],
  ['headers.x', { ...HTTP, headers: { x: 'a\nb' } }],
  ['headers.not a header', { ...HTTP, headers: { 'not a header': 'x' } }],
  ['tools', { ...HTTP, tools: {} }],
  ['tools[0]', { ...HTTP, tools: ['a'] }],
  ['tools[0].name', { ...HTTP, tools: [{ permission_policy: 'always_deny' }] }],
  [
    'tools[1].permission_policy',
    { ...HTTP, tools: [{ name: 'a' }, { name: 'b', permission_policy: 'no' }] },
  ],
];

for (const [field, server] of WRONG) {
  test(`config.mcpServers.weather.${field} is refused: ${JSON.stringify(server)}`, async () => {
    await refused(server, `config.mcpServers.weather.${field}`);
  });
}

test('a policy that needs approvals is not built', async () => {
  const tools = [{ name: 'a', permission_policy: 'always_ask' }];
  const error = await errorOf(() => createAgent(withServer({ ...HTTP, tools })));
  assertRefused(error, NotImplementedError, 'E_NOT_IMPLEMENTED', 'tools[0].permission_policy');
});

test('names of servers are bounded, and so is their number', async () => {
  for (const name of ['', ' ', 'a\nb', 'x'.repeat(257)]) {
    const error = await errorOf(() => createAgent(offline({ mcpServers: { [name]: STDIO } })));
    assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', 'config.mcpServers');
  }
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`s${at}`, STDIO]));
  const error = await errorOf(() => createAgent(offline({ mcpServers: many })));
  assertRefused(error, InvalidConfigError, 'E_INVALID_CONFIG', '1001 servers');
});

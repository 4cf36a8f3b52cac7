/**
 * A forward proxy that resolves every name to one place, for tests without a network.
 *
 * @module
 */
import { once } from 'node:events';
import { createServer, request as send } from 'node:http';
import { connect } from 'node:net';

/**
 * @param {import('node:test').TestContext} t
 * @param {string} target address that every request goes to
 * @param {{ refuse?: number }} [options] status with which everything is refused
 */
export async function startProxy(t, target, { refuse } = {}) {
  const { hostname, port } = new URL(target);
  const seen = [];
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    seen.push({ method, url, credentials: headers['proxy-authorization'] });
    if (refuse) return response.writeHead(refuse).end();
    const { pathname, search } = new URL(url);
    const onward = send({ hostname, port, method, headers, path: pathname + search }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  server.on('connect', (request, socket, head) => {
    seen.push({ method: 'CONNECT', url: request.url });
    if (refuse) return socket.end(`HTTP/1.1 ${refuse} No\r\n\r\n`);
    const onward = connect(port, hostname, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port: own } = server.address();
  return { seen, host: `127.0.0.1:${own}`, url: `http://127.0.0.1:${own}` };
}

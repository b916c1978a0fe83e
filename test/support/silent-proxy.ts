import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import pg from 'pg';
import { onTestFinished } from 'vitest';
import { boundPort } from '../../src/devnet/ports.ts';
import type { TestDatabase } from './database.ts';

/**
 * A proxy between a process and PostgreSQL. A silenced connection stays open without further data, like one whose
 * network state was lost; new connections pass. While the proxy is stalled, connections open and nothing passes.
 */
export async function startSilentProxy(database: TestDatabase) {
  const { host, port, user = '', password, database: name = '' } = new pg.Client(database.url);
  const connect = () =>
    host.startsWith('/') ? net.connect(`${host}/.s.PGSQL.${port}`) : net.connect(port, host);
  const open = new Map<Socket, Socket>();
  let isStalled = false;
  const server = net.createServer((client) => {
    const upstream = connect();
    open.set(client, upstream);
    client
      .on('error', () => {})
      .on('close', () => {
        open.delete(client);
        upstream.destroy();
      });
    upstream.on('error', () => {}).on('close', () => client.destroy());
    if (!isStalled) connectBoth(client, upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    for (const [client, upstream] of open) {
      client.destroy();
      upstream.destroy();
    }
    server.close();
  };
  onTestFinished(close);
  const credentials = `${encodeURIComponent(user)}${password ? `:${encodeURIComponent(password)}` : ''}`;
  return {
    url: `postgres://${credentials}@127.0.0.1:${boundPort(server)}/${name}`,
    connections: () => open.size,
    /** Holds back everything that is sent from now on, until `resume()`. */
    stall(): void {
      isStalled = true;
      for (const [client, upstream] of open) {
        client.unpipe(upstream);
        upstream.unpipe(client);
      }
    },
    resume(): void {
      isStalled = false;
      for (const [client, upstream] of open) connectBoth(client, upstream);
    },
    /** Silences all connections that are open now. */
    silence(): void {
      for (const [client, upstream] of open) {
        client.unpipe(upstream);
        upstream.unpipe(client);
        // read, so that the end of the connection is seen
        client.resume();
        upstream.resume();
      }
    },
    /** Ends an open connection instead of passing on the answer to its next message with this text, which has taken effect. */
    loseAnswerTo(text: string): void {
      for (const [client, upstream] of open) {
        client.on('data', (sent: Buffer) => {
          if (!sent.includes(text)) return;
          upstream.unpipe(client).once('data', () => client.destroy());
          upstream.resume();
        });
      }
    },
    close,
  };
}

function connectBoth(client: Socket, upstream: Socket): void {
  client.pipe(upstream).pipe(client);
}

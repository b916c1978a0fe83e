import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import { boundPort } from '../../src/devnet/ports.ts';

export interface Forwarder {
  readonly port: number;
  /** From now on connections lead there; before, they are closed. */
  leadTo(port: number): void;
}

/** A port that is known before the program behind it has started. */
export async function startForwarder(): Promise<Forwarder> {
  let target: number | undefined;
  const server = createServer((client) => {
    client.on('error', () => {});
    if (target === undefined) {
      client.destroy();
      return;
    }
    const upstream = connect(target, '127.0.0.1');
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
  });
  return {
    port: boundPort(server),
    leadTo: (port) => {
      target = port;
    },
  };
}

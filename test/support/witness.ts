import { once } from 'node:events';
import http from 'node:http';
import { onTestFinished } from 'vitest';
import { boundPort } from '../../src/devnet/ports.ts';

/** A server in the place of every peer: it answers nothing useful, and keeps what it was asked. */
export interface Witness {
  readonly url: string;
  /** The first segment of each request's path, in order. */
  readonly asked: string[];
}

export async function startWitness(): Promise<Witness> {
  const asked: string[] = [];
  const server = http.createServer((request, response) => {
    asked.push((request.url ?? '').split('/')[1] ?? '');
    request.resume();
    response.writeHead(503).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${boundPort(server)}`, asked };
}

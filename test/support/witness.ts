import http from 'node:http';
import { listening } from './listening.ts';

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
  const at = await listening(server);
  return { url: at, asked };
}

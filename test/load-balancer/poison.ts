import { once } from 'node:events';
import http from 'node:http';
import { boundPort } from '../../src/devnet/ports.ts';

/** A service whose runner is of no use: pushed calls get these answers in turn, and the last one is none. */
const answers = [410, 500, 'hang', 410, 503, 'hang'] as const;

export interface Poison {
  readonly url: string;
  /** The number of pushes it got. */
  readonly pushes: () => number;
  /** From now on each call is refused for good, so that all of them end. */
  relent(): void;
  close(): Promise<void>;
}

export async function startPoison(): Promise<Poison> {
  let pushes = 0;
  let isOver = false;
  const server = http.createServer((request, response) => {
    request.resume();
    const answer = isOver ? 422 : (answers[pushes % answers.length] ?? 'hang');
    pushes++;
    if (answer !== 'hang') response.writeHead(answer).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${boundPort(server)}`,
    pushes: () => pushes,
    relent() {
      isOver = true;
      server.closeAllConnections();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}

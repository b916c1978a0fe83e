import { once } from 'node:events';
import type http from 'node:http';
import { boundPort } from '../../src/devnet/ports.ts';
import { whenOver } from './shared.ts';

/** Where a server listens, on its own port, until the test ends, or what it is shared by. */
export async function listening(server: http.Server): Promise<string> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  whenOver(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${boundPort(server)}`;
}

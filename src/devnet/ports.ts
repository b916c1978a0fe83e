import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type Server, createServer } from 'node:net';
import { errorCode } from './error-code.ts';

/** Someone else listens there. */
export class PortTakenError extends Error {
  readonly code = 'EADDRINUSE';

  constructor(port: number) {
    super(`Port ${port} is taken`);
  }
}

const loopback = '127.0.0.1';

/** Above the ports that browsers and fetch refuse to use (the last is 10080). */
const lowestChosenPort = 10_081;
const firstEphemeralPort = 32_768;

/**
 * A port that is free at the moment. Another process may take it first: be ready to call this again. The port lies
 * below those that operating systems give to outgoing connections (Linux: from 32768, others: from 49152) and to
 * servers that ask for any port, so none of these takes it between this call and its use.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(lowestChosenPort, firstEphemeralPort);
    if (await isPortFree(port)) return port;
  }
}

/** Whether we could listen on this loopback port now. */
export async function isPortFree(port: number): Promise<boolean> {
  try {
    await claimBriefly(port);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

/** A port that a person chose, for a part of this program. */
export interface ChosenPort {
  readonly part: string;
  readonly port: number;
  /** The option that chooses another one. */
  readonly option: string;
}

/** Throws one error for all ports that are in use, before anything is started. */
export async function requireFreePorts(ports: readonly ChosenPort[]): Promise<void> {
  const taken: string[] = [];
  for (const { part, port, option } of ports)
    if (!(await isPortFree(port)))
      taken.push(`Port ${port} is in use, and the ${part} needs it: choose another with ${option}.`);
  if (taken.length === 0) return;
  throw new Error(
    `${taken.join('\n')}\nNothing was started. Perhaps a Tollbook in another folder uses the port: then stop that one instead.`,
  );
}

async function claimBriefly(port: number): Promise<number> {
  const server = createServer().listen(port, loopback);
  await once(server, 'listening');
  const claimed = boundPort(server);
  server.close();
  await once(server, 'close');
  return claimed;
}

/** The port a listening server got. */
export function boundPort(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server listens on no port');
  return address.port;
}

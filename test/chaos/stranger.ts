import { Agent, fetch } from 'undici';
import { header } from '../support/payer.ts';
import { type JobRequest, timeLimit } from './client.ts';

/** Hostile clients have their own addresses: limits by address must stop them, and no other client. */
export const strangers = { provoker: '127.0.0.66', flooder: '127.0.0.67' } as const;
type Stranger = keyof typeof strangers;

const agents: Readonly<Record<Stranger, Agent>> = {
  provoker: new Agent({ localAddress: strangers.provoker, connections: 32 }),
  flooder: new Agent({ localAddress: strangers.flooder, connections: 32 }),
};

/** Sends a payment once, as the provoker. The status; undefined without an answer. */
export async function sendAsStranger(
  gateway: string,
  { path, body, headers }: JobRequest,
  payment: unknown,
  deadline: AbortSignal,
): Promise<number | undefined> {
  return requestAs('provoker', gateway + path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/plain', ...headers, ...header(payment) },
    signal: timeLimit(3_000, deadline),
  });
}

export async function requestAs(
  stranger: Stranger,
  url: string,
  init: Parameters<typeof fetch>[1],
): Promise<number | undefined> {
  try {
    const response = await fetch(url, { ...init, dispatcher: agents[stranger] });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}

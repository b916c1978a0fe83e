import { Agent, fetch } from 'undici';
import { header } from '../support/payer.ts';
import { type JobRequest, timeLimit } from './client.ts';

/** A hostile client has an address of its own: limits by address must stop it, and no other client. */
const agent = new Agent({ localAddress: '127.0.0.66', connections: 32 });

/** Sends a payment once from the stranger's address. The status; undefined without an answer. */
export async function sendAsStranger(
  gateway: string,
  { path, body, headers }: JobRequest,
  payment: unknown,
  deadline: AbortSignal,
): Promise<number | undefined> {
  return requestAsStranger(gateway + path, {
    method: 'POST',
    body,
    headers: { 'content-type': 'text/plain', ...headers, ...header(payment) },
    signal: timeLimit(3_000, deadline),
  });
}

export async function requestAsStranger(
  url: string,
  init: Parameters<typeof fetch>[1],
): Promise<number | undefined> {
  try {
    const response = await fetch(url, { ...init, dispatcher: agent });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return undefined;
  }
}

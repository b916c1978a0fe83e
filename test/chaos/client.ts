import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { header, type Offer, offerOf } from '../support/payer.ts';
import type { Attempt, Presentation, SignedOnce } from './book.ts';
import type { Random } from './random.ts';

/** What a client needs to reach the gateways. */
export interface ClientParts {
  readonly urls: readonly string[];
  /** Aborts when nobody waits any longer. */
  readonly deadline: AbortSignal;
}

export interface JobRequest {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

const answerShape = z.object({
  code: z.string().optional(),
  reason: z.string().optional(),
  call_id: z.int().optional(),
  quote_digest: z.string().optional(),
});

/** Asks for a quote until there is one. Undefined where none came in time. */
export async function askForOffer(
  { urls, deadline }: ClientParts,
  random: Random,
  { path, body, headers }: JobRequest,
): Promise<Offer | undefined> {
  while (!deadline.aborted) {
    try {
      const response = await post(random.pick(urls) + path, body, headers, timeLimit(3_000, deadline));
      const text = await response.text();
      if (response.status === 402)
        return offerOf({ status: 402, headers: response.headers, text, json: undefined });
    } catch {
      // a gateway that is being killed
    }
    await rest(random, deadline);
  }
  return undefined;
}

/** The header of a payment, in either version. */
export function paymentHeader({ payment }: SignedOnce, version: 1 | 2): Record<string, string> {
  if (version === 2) return header(payment);
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payment.payload };
  return { 'x-payment': Buffer.from(JSON.stringify(v1)).toString('base64') };
}

/**
 * Sends the same payment with the same request until it is accepted or refused for good, as a client must that was told
 * to: after broken connections, its own impatience, and every 5xx.
 */
export async function present(
  { urls, deadline }: ClientParts,
  random: Random,
  request: JobRequest,
  presentation: Presentation,
): Promise<Presentation['end']> {
  while (!deadline.aborted) {
    const limitMs = random.chance(0.12) ? random.between(30, 600) : 5_000;
    const attempt = await sendOnce(random.pick(urls), request, timeLimit(limitMs, deadline));
    presentation.attempts.push(attempt);
    if (attempt.status === 202) return (presentation.end = 'accepted');
    if (isDefinite(attempt)) return (presentation.end = 'refused');
    await rest(random, deadline);
  }
  return presentation.end;
}

/** Whether a client takes this answer for the last word that nothing was bought. */
export function isDefinite({ status }: Attempt): boolean {
  return status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** One request, and what came of it. */
export async function sendOnce(gateway: string, request: JobRequest, signal: AbortSignal): Promise<Attempt> {
  const sentAt = Date.now();
  try {
    const response = await post(gateway + request.path, request.body, request.headers, signal);
    const told = answerShape.safeParse(await response.json().catch(() => ({})));
    const { code, reason, call_id: callId, quote_digest: digest } = told.data ?? {};
    return { gateway, sentAt, endedAt: Date.now(), status: response.status, code, reason, callId, digest };
  } catch {
    return { gateway, sentAt, endedAt: Date.now(), status: undefined };
  }
}

function post(
  url: string,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Response> {
  return fetch(url, { method: 'POST', body, headers: { 'content-type': 'text/plain', ...headers }, signal });
}

export function timeLimit(ms: number, deadline: AbortSignal): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(ms), deadline]);
}

async function rest(random: Random, deadline: AbortSignal): Promise<void> {
  await sleep(random.between(80, 300), undefined, { signal: deadline }).catch(() => {});
}

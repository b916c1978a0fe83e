import { z } from 'zod';
import { header, type Offer, offerOf } from '../support/payer.ts';
import type { Attempt, Presentation, SignedOnce } from './records.ts';
import type { Random } from './random.ts';
import { pause } from './until.ts';

/** The gateways that a client may ask, and when it stops. */
export interface ClientParts {
  readonly urls: readonly string[];
  /** Aborts when the run is over. */
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

/** Asks for an offer until there is one. Undefined when none arrives in time. */
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
      // the gateway was killed: ask again
    }
    await pauseBriefly(random, deadline);
  }
  return undefined;
}

/** The payment header in x402 version 1 or 2. */
export function paymentHeader({ payment }: SignedOnce, version: 1 | 2): Record<string, string> {
  if (version === 2) return header(payment);
  const v1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: payment.payload };
  return { 'x-payment': Buffer.from(JSON.stringify(v1)).toString('base64') };
}

/** So often in a row a client is told that its payment landed and was lost; then it waits for the operator's recovery. */
const mostUnrecorded = 40;

/**
 * Sends the same payment with the same request until it is accepted or definitely refused, as the contract asks: after
 * broken connections, client time-outs, and every 5xx.
 */
export async function present(
  { urls, deadline }: ClientParts,
  random: Random,
  request: JobRequest,
  presentation: Presentation,
): Promise<Presentation['end']> {
  let unrecorded = 0;
  while (!deadline.aborted && unrecorded < mostUnrecorded) {
    const limitMs = random.chance(0.12) ? random.between(30, 600) : 5_000;
    const attempt = await sendOnce(random.pick(urls), request, timeLimit(limitMs, deadline));
    presentation.attempts.push(attempt);
    if (attempt.status === 202) return (presentation.end = 'accepted');
    if (isDefinite(attempt)) return (presentation.end = 'refused');
    unrecorded = attempt.code === 'payment_unrecorded' ? unrecorded + 1 : 0;
    await pauseBriefly(random, deadline);
  }
  return presentation.end;
}

/**
 * Whether a client takes this answer as definite: nothing was bought. It knows that its signature as a caller is valid for minutes:
 * if the gateway calls it expired, a clock is wrong for the moment.
 */
export function isDefinite({ status, code }: Attempt): boolean {
  if (code === 'signature_expired') return false;
  return status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Sends one request and returns its result. */
export async function sendOnce(gateway: string, request: JobRequest, signal: AbortSignal): Promise<Attempt> {
  const sentAt = Date.now();
  try {
    const response = await post(gateway + request.path, request.body, request.headers, signal);
    const answer = readAnswer(await response.text().catch(() => ''));
    return { gateway, sentAt, endedAt: Date.now(), status: response.status, ...answer };
  } catch {
    return { gateway, sentAt, endedAt: Date.now(), status: undefined };
  }
}

/** What the body of an answer says; nothing where it is none of a gateway. */
export function readAnswer(body: string): Pick<Attempt, 'code' | 'reason' | 'callId' | 'digest'> {
  try {
    const { code, reason, call_id: callId, quote_digest: digest } = answerShape.parse(JSON.parse(body));
    return { code, reason, callId, digest };
  } catch {
    return {};
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

async function pauseBriefly(random: Random, deadline: AbortSignal): Promise<void> {
  await pause(random.between(80, 300), deadline);
}

import { z } from 'zod';
import { sha256 } from '../../src/base/values/sha256.ts';
import { header, type Offer, offerOf } from '../support/payer.ts';
import type { Attempt, Presentation, SignedOnce } from './records.ts';
import type { Random } from './random.ts';
import { isOfRoute } from './schedule.ts';
import { pause } from './until.ts';

/** The gateways that a client may ask, and when it stops. */
export interface ClientParts {
  readonly urls: readonly string[];
  /** Aborts when the run is over. */
  readonly deadline: AbortSignal;
}

export interface JobRequest {
  /** POST where it is left out. */
  readonly method?: string;
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
  request: JobRequest,
): Promise<Offer | undefined> {
  while (!deadline.aborted) {
    try {
      const response = await send(random.pick(urls), request, timeLimit(3_000, deadline));
      const text = await response.text();
      const { status, headers } = response;
      const offer = status === 402 ? offerOf({ status, headers, text, json: undefined }) : undefined;
      // no facilitator has said yet what it settles
      if (offer && offer.accepts.length > 0) return offer;
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
 * broken connections, client time-outs, and every 5xx but one.
 * @param leaves so often at first it closes the connection early
 */
export async function present(
  { urls, deadline }: ClientParts,
  random: Random,
  request: JobRequest,
  presentation: Presentation,
  leaves = 0,
): Promise<Presentation['end']> {
  let unrecorded = 0;
  while (!deadline.aborted && unrecorded < mostUnrecorded) {
    const isEarly = presentation.attempts.length < leaves || random.chance(0.12);
    const limitMs = isEarly ? random.between(30, 600) : 5_000;
    const attempt = await sendOnce(random.pick(urls), request, timeLimit(limitMs, deadline));
    presentation.attempts.push(attempt);
    const end = endOf(attempt);
    if (end) return (presentation.end = end);
    unrecorded = attempt.code === 'payment_unrecorded' ? unrecorded + 1 : 0;
    await pauseBriefly(random, deadline);
  }
  return presentation.end;
}

/**
 * Whether a client takes this answer as definite: nothing was bought. It knows that its signature as a caller is valid for minutes:
 * if the gateway calls it expired, a clock is wrong for the moment.
 */
export function isDefinite({ status, code, answer }: Attempt): boolean {
  if (answer || code === 'signature_expired' || isClosed(code)) return false;
  return status !== undefined && status >= 400 && status < 500 && status !== 408 && status !== 429;
}

/** Whether a route says that the payment is charged, and that there is nothing more to get for it. */
function isClosed(code: string | undefined): boolean {
  return code === 'refund_due' || code === 'answer_not_kept';
}

/** What a client makes of an answer; undefined where it sends the same payment again. */
function endOf(attempt: Attempt): Presentation['end'] | undefined {
  const { status = 0, code, answer } = attempt;
  if (answer) {
    if (answer.sha256 === undefined || status >= 500) return undefined;
    return answer.isCharged || status < 400 ? 'accepted' : 'refused';
  }
  if (status === 202) return 'accepted';
  if (isClosed(code)) return 'closed';
  // the only answer of a route beside 402 after which a client signs another payment
  return isDefinite(attempt) || code === 'upstream_unanswered' ? 'refused' : undefined;
}

/** Sends one request and returns its result. */
export async function sendOnce(gateway: string, request: JobRequest, signal: AbortSignal): Promise<Attempt> {
  const sentAt = Date.now();
  try {
    const response = await send(gateway, request, signal);
    const body = await response.bytes().catch(() => undefined);
    const said = readAnswer(Buffer.from(body ?? []).toString('utf8'));
    const seen = { gateway, sentAt, endedAt: Date.now(), status: response.status, ...said };
    if (!isOfRoute(request) || (said.code !== undefined && body)) return seen;
    const isCharged = response.headers.has('payment-response');
    return { ...seen, answer: { isCharged, sha256: body && sha256(body) } };
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

function send(
  gateway: string,
  { method = 'POST', path, body, headers }: JobRequest,
  signal: AbortSignal,
): Promise<Response> {
  const own =
    method === 'POST' ? { body, headers: { 'content-type': 'text/plain', ...headers } } : { headers };
  return fetch(gateway + path, { method, signal, ...own });
}

export function timeLimit(ms: number, deadline: AbortSignal): AbortSignal {
  return AbortSignal.any([AbortSignal.timeout(ms), deadline]);
}

async function pauseBriefly(random: Random, deadline: AbortSignal): Promise<void> {
  await pause(random.between(80, 300), deadline);
}

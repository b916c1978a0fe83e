import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { z } from 'zod';
import type { Payment } from '../support/payer.ts';
import { readAnswer, sendOnce } from '../chaos/client.ts';
import { complete } from '../chaos/completions.ts';
import type { PaymentNetwork } from '../chaos/environment.ts';
import type { Random } from '../chaos/random.ts';
import type { CreditAccount, Presentation, Records } from '../chaos/records.ts';
import { jobs } from '../chaos/schedule.ts';
import { pause, repeatUntil } from '../chaos/until.ts';
import type { Exchange, Operation } from './judge.ts';
import { poisoned } from './participants.ts';

export interface ClientParts {
  /** Of the balancer. */
  readonly url: string;
  readonly network: PaymentNetwork;
  readonly records: Records;
  readonly exchanges: Exchange[];
  readonly accounts: readonly CreditAccount[];
  /** Aborts when clients begin nothing more. */
  readonly stopping: AbortSignal;
  /** Aborts when the run is over. */
  readonly deadline: AbortSignal;
}

const honestPaths = [jobs.pushed.path, jobs.leased.path];
const poisonPaths = [`/x402/jobs/${poisoned.pushed}/0`, `/x402/jobs/${poisoned.leased}/0`];

const accepted = z.object({ quote_digest: z.string(), receipt_token: z.string() });
const receiptShape = z.object({ state: z.string() });

/** Pays for one job after the other with the official client, and follows each receipt for some seconds. */
export function buy(parts: ClientParts, name: string, random: Random): Promise<void> {
  return again(parts, random, { from: 50, to: 400 }, () => buyOnce(parts, name, random, honestPaths));
}

/** Pays for jobs whose runners are of no use. */
export function buyPoison(parts: ClientParts, name: string, random: Random): Promise<void> {
  return again(parts, random, { from: 500, to: 1_500 }, () => buyOnce(parts, name, random, poisonPaths));
}

async function buyOnce(
  parts: ClientParts,
  name: string,
  random: Random,
  paths: readonly string[],
): Promise<void> {
  const { url, network, records, exchanges, stopping, deadline } = parts;
  const path = random.pick(paths);
  const body = `${name} ${random.hex32()}`;
  const headers = { 'content-type': 'text/plain' };
  let presented: Presentation | undefined;
  let paymentHeader = '';

  const watched: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    paymentHeader = request.headers.get('payment-signature') ?? '';
    if (paymentHeader !== '') {
      const payment = JSON.parse(Buffer.from(paymentHeader, 'base64').toString('utf8')) as Payment;
      const signed = records.add(payment);
      // its facilitator calls it valid, whatever it answers meanwhile
      records.validated.add(signed.key);
      const of = { scenario: name, signed, version: 2, method: 'POST', path, body } as const;
      presented = { ...of, attempts: [], end: 'unanswered' };
      records.presentations.push(presented);
    }
    return watch(parts, paymentHeader === '' ? 'offer' : 'payment', request, presented);
  };
  const account = random.pick(network.payers);
  const client = x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(account) }],
    spendControls: false,
  });
  const response = await wrapFetchWithPayment(watched, client)(url + path, {
    method: 'POST',
    body,
    headers,
  }).catch(() => undefined);
  // the payment is not known to have been made: the same payment again, as the documentation says
  const presentation = presented;
  if (!presentation) return;
  let last = presentation.attempts.at(-1);
  while (last?.status !== 202 && !deadline.aborted) {
    await pause(300, deadline);
    const request = { path, body, headers: { ...headers, 'payment-signature': paymentHeader } };
    last = await sendOnce(url, request, deadline);
    presentation.attempts.push(last);
    exchanges.push({ operation: 'payment', path, nonce: presentation.signed.nonce, ...last });
  }
  if (last?.status !== 202) return;
  presentation.end = 'accepted';
  const { data } = accepted.safeParse(await response?.json().catch(() => undefined));
  if (data && paths === honestPaths) await followReceipt(parts, data, stopping);
}

const followedMs = 3_000;

async function followReceipt(
  parts: ClientParts,
  { quote_digest: digest, receipt_token: token }: z.infer<typeof accepted>,
  stopping: AbortSignal,
): Promise<void> {
  const untilMs = performance.now() + followedMs;
  while (performance.now() < untilMs && !stopping.aborted) {
    const request = new Request(`${parts.url}/x402/receipts/${digest}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const response = await watch(parts, 'receipt', request).catch(() => undefined);
    const { data } = receiptShape.safeParse(await response?.json().catch(() => undefined));
    if (data?.state === 'completed' || data?.state === 'dead_lettered') return;
    await pause(300, stopping);
  }
}

/** Asks for completions, with and without a stream. */
export function chat(
  parts: ClientParts,
  name: string,
  random: Random,
  account: CreditAccount,
): Promise<void> {
  const { url, deadline, records } = parts;
  const of = { scenario: name, means: { kind: 'credit', account } } as const;
  return again(parts, random, { from: 50, to: 300 }, async () => {
    await complete({ urls: [url], deadline, records }, random, of, { isStream: random.chance(0.6) });
  });
}

/** Reads what can be read without a payment. The pauses of some are longer than connections usually stay open. */
export function read(
  parts: ClientParts,
  random: Random,
  pauseMs: { from: number; to: number },
): Promise<void> {
  const authorization = `Bearer ${parts.accounts[0]?.key}`;
  const paths = [
    '/x402/health',
    '/x402/stats',
    '/status',
    '/v1/models',
    '/x402/jobs/1/0/price',
    '/openapi.json',
  ];
  return again(parts, random, pauseMs, async () => {
    const path = random.pick([...paths, '/v1/credits']);
    const headers: Record<string, string> = path === '/v1/credits' ? { authorization } : {};
    await watch(parts, 'read', new Request(parts.url + path, { headers })).catch(() => {});
  });
}

/** People who open an account, each from their own address. */
export function signUp(parts: ClientParts, name: string, random: Random): Promise<void> {
  let count = 0;
  return again(parts, random, { from: 1_500, to: 2_500 }, async () => {
    const body = { email: `${name}-${++count}@example.org`, password: random.hex32(), name: 'Ada' };
    const request = new Request(`${parts.url}/api/auth/sign-up/email`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        origin: 'https://chaos.example',
        'x-forwarded-for': `198.51.100.${random.between(1, 254)}`,
      },
    });
    await watch(parts, 'sign_up', request).catch(() => {});
  });
}

/** Sends a request and notes its answer. */
async function watch(
  { exchanges, deadline }: ClientParts,
  operation: Operation,
  request: Request,
  presentation?: Presentation,
): Promise<Response> {
  const sentAt = Date.now();
  const { origin: gateway, pathname: path } = new URL(request.url);
  const nonce = presentation?.signed.nonce;
  const note = (status: number | undefined, text: string): void => {
    const answer = status === undefined ? { code: text } : readAnswer(text);
    const seen = { sentAt, endedAt: Date.now(), status, ...answer };
    exchanges.push({ operation, path, nonce, ...seen });
    presentation?.attempts.push({ gateway, ...seen });
  };
  try {
    const response = await fetch(request, { signal: deadline });
    const text = await response.clone().text();
    note(response.status, text);
    return response;
  } catch (error) {
    note(undefined, reasonOf(error));
    throw error;
  }
}

/** fetch says only that it failed; its cause has the reason. */
function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return [error, cause].flatMap((one) => (one instanceof Error ? [one.message] : [])).join(': ');
}

function again(
  { stopping }: ClientParts,
  random: Random,
  pauseMs: { readonly from: number; readonly to: number },
  act: () => Promise<void>,
): Promise<void> {
  return repeatUntil(stopping, () => random.between(pauseMs.from, pauseMs.to), act);
}

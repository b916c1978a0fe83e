import { setTimeout as sleep } from 'node:timers/promises';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { UptoEvmScheme } from '@x402/evm/upto/client';
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { formatUnits } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import type { JobId } from '../base/values/job.ts';
import type { Hex } from '../base/values/primitives.ts';
import type { TransferMethod } from '../base/values/transfer-method.ts';

/** How the client pays. */
export interface PayerOptions {
  /** Of the offers it takes the first of this kind; undefined: the first of all. */
  readonly transferMethod?: TransferMethod | undefined;
  /** A node: with it, the client signs the approvals that the gateway says its facilitator submits. */
  readonly rpcUrl?: string | undefined;
}

export interface PaidJobOptions extends PayerOptions {
  readonly gatewayUrl: string;
  readonly privateKey: Hex;
  readonly serviceId: number;
  readonly jobIndex: number;
  readonly body: string | Buffer;
  readonly contentType?: string;
  /** Called with a sentence for each step. */
  readonly onStep?: (step: string) => void;
}

export interface PaidJob {
  readonly status: number;
  readonly body: AcceptedBody;
  readonly transaction: string;
  /** What the runner answered. */
  readonly result: Buffer;
}

interface AcceptedBody {
  readonly quote_digest: string;
  readonly receipt_token: string;
  readonly receipt_url: string;
  readonly call_id: number;
  readonly payment: {
    readonly amount: string;
    readonly symbol: string;
    readonly decimals: number;
    readonly payer: string;
    readonly transaction: string;
  };
}

const resultPatienceMs = 30_000;
const askEveryMs = 200;

/**
 * Waits until the gateway offers the job, as it does once it has heard its facilitator. With 0 ms it asks nothing.
 * @throws if it still does not in the end
 */
export async function untilOffered(
  gatewayUrl: string,
  { serviceId, jobIndex }: JobId,
  patienceMs: number,
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  let last = '';
  while (Date.now() < deadline) {
    const price = await fetch(`${gatewayUrl}/x402/jobs/${serviceId}/${jobIndex}/price`).catch(String);
    if (typeof price === 'string') last = price;
    else if (price.ok) return;
    else last = `${price.status}: ${await price.text()}`;
    await sleep(askEveryMs);
  }
  if (patienceMs > 0) throw new Error(`the gateway does not offer the job: ${last}`);
}

/**
 * Pays for a job as any client of the official SDK would, and follows its receipt to the runner's result.
 * Throws if the gateway does not answer 202 or the result does not come.
 */
export async function payForOneJob(options: PaidJobOptions): Promise<PaidJob> {
  const { gatewayUrl, privateKey, serviceId, jobIndex, body, onStep = () => {} } = options;
  const response = await payingFetchOf(
    privateKey,
    options,
    onStep,
  )(`${gatewayUrl}/x402/jobs/${serviceId}/${jobIndex}`, {
    method: 'POST',
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers: { 'content-type': options.contentType ?? 'text/plain; charset=utf-8' },
  });
  const text = await response.text();
  if (response.status !== 202) throw new Error(`the gateway answered ${response.status}: ${text}`);
  const accepted = JSON.parse(text) as AcceptedBody;
  const { transaction } = decodePaymentResponseHeader(response.headers.get('payment-response') ?? '');
  const { amount, symbol, decimals, payer } = accepted.payment;
  const paid = formatUnits(BigInt(amount), decimals);
  onStep(`202 accepted: ${payer} paid ${paid} ${symbol} in transaction ${transaction}`);
  onStep(`call ${accepted.call_id}, receipt ${accepted.quote_digest}`);
  const result = await followReceipt(accepted, onStep);
  return { status: response.status, body: accepted, transaction, result };
}

export interface PaidAnswer {
  readonly status: number;
  readonly body: string;
  /** What was taken for an answer that was passed on while it came. */
  readonly receiptUrl: string | undefined;
  /** Undefined where nothing was charged, or the answer ended before its payment. */
  readonly payment: { readonly transaction: string; readonly payer?: string } | undefined;
}

/** Pays for a GET, or for a POST of JSON, as any client of the official SDK would. */
export async function payForUrl(
  url: string,
  privateKey: Hex,
  onStep: (step: string) => void = () => {},
  { json, ...options }: PayerOptions & { readonly json?: string | undefined } = {},
): Promise<PaidAnswer> {
  const headers = { 'content-type': 'application/json' };
  const posted = json === undefined ? undefined : { method: 'POST', body: json, headers };
  const response = await payingFetchOf(privateKey, options, onStep)(url, posted);
  const settled = response.headers.get('payment-response');
  const payment = settled === null ? undefined : decodePaymentResponseHeader(settled);
  const [, receiptUrl] = /<([^>]+)>; rel="payment-receipt"/.exec(response.headers.get('link') ?? '') ?? [];
  return { status: response.status, body: await response.text(), receiptUrl, payment };
}

function payingFetchOf(
  privateKey: Hex,
  { transferMethod, rpcUrl }: PayerOptions,
  onStep: (step: string) => void,
): typeof fetch {
  const account = privateKeyToAccount(privateKey);
  const reading = rpcUrl === undefined ? undefined : { rpcUrl };
  // the SDK's own spending limits are for wallets with real money
  const client = x402Client.fromConfig({
    schemes: [
      { network: 'eip155:*', client: new ExactEvmScheme(account, reading) },
      { network: 'eip155:*', client: new UptoEvmScheme(account, reading) },
    ],
    spendControls: false,
    policies:
      transferMethod === undefined
        ? []
        : [(_, offers) => offers.filter((offer) => methodOf(offer) === transferMethod)],
  });
  return wrapFetchWithPayment(announce(onStep), client);
}

function methodOf({
  scheme,
  extra,
}: {
  readonly scheme: string;
  readonly extra?: Record<string, unknown>;
}): unknown {
  return scheme === 'upto' ? scheme : extra?.['assetTransferMethod'];
}

/** The plain fetch, telling of the two requests that the SDK makes of one. */
function announce(onStep: (step: string) => void): typeof fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (response.status === 402) onStep('402 payment required: signing the first payment offered');
    return response;
  };
}

async function followReceipt(accepted: AcceptedBody, onStep: (step: string) => void): Promise<Buffer> {
  const deadline = Date.now() + resultPatienceMs;
  let state = '';
  while (Date.now() < deadline) {
    const response = await fetch(accepted.receipt_url, {
      headers: { authorization: `Bearer ${accepted.receipt_token}` },
    });
    const receipt = (await response.json()) as { state: string; result?: { body_base64: string } | null };
    if (receipt.state !== state) onStep(`receipt: ${receipt.state}`);
    ({ state } = receipt);
    if (receipt.result) return Buffer.from(receipt.result.body_base64, 'base64');
    if (state === 'dead_lettered') break;
    await sleep(50);
  }
  throw new Error(`the runner's result did not come: the receipt says ${state}`);
}

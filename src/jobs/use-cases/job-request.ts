import { hash } from 'node:crypto';
import { type DecodedPayment, decodePayment } from '../../payments/rules/decode-payment.ts';
import { type CallerHeaders, parseCaller, parseNonce } from '../../payments/rules/caller-signature.ts';
import type { JobId } from '../../base/values/job.ts';
import { bindingHash } from '../../payments/rules/payment.ts';
import { sha256 } from '../../base/values/sha256.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { RouteConfig } from '../../base/config/config.ts';
import type { Header } from '../rules/route-headers.ts';
import type { AnswerClient, AnswerHead } from './routes/answer-client.ts';
import { addressBudgetKey, type Budget, type Charge } from '../../base/runtime/budget.ts';

/** A request for a paid job as its headers show it, before its body is read. */
export interface JobHead {
  /** Unique to this request. */
  readonly requestId: string;
  /** Undefined if no job can have the ids in the path. */
  readonly job: JobId | undefined;
  /** The route on whose path it came: there alone that is sold, and no other job is. */
  readonly route?: RouteOfRequest | undefined;
  readonly method: string;
  readonly path: string;
  readonly contentType: string | undefined;
  /** The length that its headers state; 0 if they state none. */
  readonly declaredBytes: number;
  /** The payment header as it came: `PAYMENT-SIGNATURE` is version 2, `X-PAYMENT` version 1. */
  readonly payment: { readonly header: string; readonly x402Version: 1 | 2 } | undefined;
  /**
   * The quote that the request's address names, as it came: a list if its parameter is repeated. A payment names its quote
   * itself, and is sent to the same address.
   */
  readonly quoteToken?: string | readonly string[] | undefined;
  readonly callerHeaders: CallerHeaders;
  /** All of them, names in lower case: a policy may order calls by one. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The signature that asks for the delivery of a recovered payment. */
  readonly redeliverySignature: string | undefined;
  /** Where the client wants to be called once the end of its call is known, as it came. */
  readonly callbackUrl?: string | undefined;
  readonly clientAddress: string;
}

/** A request for a route. */
export interface RouteOfRequest {
  readonly config: RouteConfig;
  /** The client's headers as the upstream gets them; most requests reach none. */
  readonly headers: () => readonly Header[];
  /** Begins to give the client an answer whose payment is settled once the answer has ended. */
  readonly passOn?: ((digest: Hex, head: AnswerHead) => AnswerClient) | undefined;
}

/** The payment of a request: absent, unreadable, or decoded. */
export type SentPayment =
  | { readonly kind: 'none' }
  | { readonly kind: 'undecodable'; readonly reason: string }
  | { readonly kind: 'decoded'; readonly decoded: DecodedPayment };

/** A request that was charged to its client. */
export interface OpenedRequest extends JobHead {
  readonly sent: SentPayment;
  /** Its own stream in the ledger: refusals and dry runs that belong to no payment are recorded there. */
  readonly stream: string;
  /** The key of its client's budget, by the client address. */
  readonly client: string;
  /** What it is charged, if it reaches no settlement: to its client address, later to its payer as well. */
  readonly charge: Charge;
}

/** A request with its body. */
export interface WholeRequest extends OpenedRequest {
  readonly body: Buffer;
}

/** A whole request, with the hashes that several steps need. */
export interface BoundRequest extends WholeRequest {
  readonly bodySha256: Hex;
  readonly binding: Hex;
  /**
   * What a copy of the request has in common with it, in hex: all that decides whether its payment is taken. A request that its client
   * has corrected has another one, also with the same payment.
   */
  readonly copyKey: string;
}

/** A request with a payment. */
export interface PaidRequest extends BoundRequest {
  readonly decoded: DecodedPayment;
}

/** Charges the request to its client address and decodes its payment. */
export function openRequest({ budget }: { readonly budget: Budget }, head: JobHead): OpenedRequest {
  const charge = budget.open();
  const client = addressBudgetKey(head.clientAddress);
  charge.take(client);
  return { ...head, sent: sentPayment(head), stream: `request:${head.requestId}`, client, charge };
}

function sentPayment({ payment }: JobHead): SentPayment {
  if (!payment) return { kind: 'none' };
  const decoded = decodePayment(payment.header, payment.x402Version);
  return typeof decoded === 'object'
    ? { kind: 'decoded', decoded }
    : { kind: 'undecodable', reason: decoded };
}

/** Computes the hashes, once. A request without a payment needs none. */
export function bindRequest(request: WholeRequest): BoundRequest {
  const bodySha256 = sha256(request.body);
  const { method, path, callbackUrl, payment, contentType, headers, callerHeaders, quoteToken } = request;
  const { caller, nonce } = callerHeaders;
  const binding = bindingHash({
    method,
    path,
    bodySha256,
    caller: caller === undefined ? undefined : parseCaller(caller),
    callerNonce: nonce === undefined ? undefined : parseNonce(nonce),
    callbackUrl,
  });
  const encoding = headers?.['content-encoding'];
  const { redeliverySignature } = request;
  const parts = [payment, binding, contentType, encoding, callerHeaders, quoteToken, redeliverySignature];
  const copyKey = hash('sha256', JSON.stringify(parts), 'hex').slice(0, 32);
  return { ...request, bodySha256, binding, copyKey };
}

import { type CallerHeaders, parseCaller, parseNonce } from '../domain/payments/caller-signature.ts';
import type { JobId } from '../domain/payments/job.ts';
import { bindingHash, sha256 } from '../domain/payments/payment.ts';
import type { Hex } from '../domain/values/primitives.ts';
import { addressBudgetKey, type Budget, type Charge } from './budget.ts';

/** A request for a paid job, as it arrived. */
export interface JobRequest {
  /** Unique to this request; names its own stream in the ledger. */
  readonly requestId: string;
  /** Undefined if no job can have the ids in the path. */
  readonly job: JobId | undefined;
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  readonly contentType: string | undefined;
  /** The payment header as it came: `PAYMENT-SIGNATURE` is version 2, `X-PAYMENT` version 1. */
  readonly payment: { readonly header: string; readonly x402Version: 1 | 2 } | undefined;
  readonly callerHeaders: CallerHeaders;
  readonly clientAddress: string;
}

/** A request with what was computed from it once. */
export interface BoundRequest extends JobRequest {
  readonly bodySha256: Hex;
  readonly binding: Hex;
  /** The key of its client's budget, by the client address. */
  readonly client: string;
  /** What it is charged, if it reaches no settlement: to its client address, later to its payer as well. */
  readonly charge: Charge;
}

/** Charges the request to its client address and computes the hashes that several steps need. */
export function bindRequest({ budget }: { readonly budget: Budget }, request: JobRequest): BoundRequest {
  const bodySha256 = sha256(request.body);
  const { method, path } = request;
  const { caller, nonce } = request.callerHeaders;
  const binding = bindingHash({
    method,
    path,
    bodySha256,
    caller: caller === undefined ? undefined : parseCaller(caller),
    callerNonce: nonce === undefined ? undefined : parseNonce(nonce),
  });
  const charge = budget.open();
  const client = addressBudgetKey(request.clientAddress);
  charge.take(client);
  return { ...request, bodySha256, binding, client, charge };
}

/** The stream of one request: refusals and dry runs that belong to no payment are recorded here. */
export function requestStream({ requestId }: Pick<JobRequest, 'requestId'>): string {
  return `request:${requestId}`;
}

import { signCall } from '../../../base/values/call-signature.ts';
import { type CallFacts, callMetadata } from '../../../calls/use-cases/deliver-call.ts';
import type { JobId } from '../../../base/values/job.ts';
import { type Ledger, nowSecs } from '../../../ledger/store/ledger.ts';
import { paidCallKey } from '../../../payments/rules/payment.ts';
import { paymentKey } from '../../../payments/store/claims.ts';
import type { StartedPayment } from '../../../payments/use-cases/record-settlement.ts';
import type { Header } from '../../rules/route-headers.ts';
import type { BoundRequest, RouteOfRequest } from '../job-request.ts';

/** An attempt of a paid call, as its upstream gets it. */
export function paidCall(
  { bodySha256 }: Pick<BoundRequest, 'bodySha256'>,
  { serviceId, jobIndex }: JobId,
  { digest, callId, state: { payment } }: StartedPayment & { readonly callId: number },
  { attempt, caller }: { readonly attempt: number; readonly caller: string | undefined },
) {
  const { network, asset, symbol } = payment;
  const job = { serviceId, jobIndex };
  return {
    ...job,
    callId,
    attempt,
    stream: digest,
    origin: { kind: 'x402', network, asset, symbol, caller },
    idempotencyKey: paidCallKey({ payment: paymentKey(payment), job, bodySha256 }),
  } as const satisfies CallFacts;
}

/** The client's headers, and in place of its payment what a runner gets: the metadata of the call, signed where the route has a token. */
export function callHeaders(
  ledger: Pick<Ledger, 'lane'>,
  { config, headers }: RouteOfRequest,
  call: CallFacts,
  body: Buffer,
): readonly Header[] {
  const metadata = callMetadata(call, config.maxResponseBytes);
  const { idempotencyKey: id } = call;
  const timestampSecs = nowSecs(ledger);
  const signature = config.tokens && signCall({ secret: config.tokens, id, timestampSecs, body, metadata });
  return [...headers(), ...Object.entries<string>({ ...metadata, ...signature })];
}

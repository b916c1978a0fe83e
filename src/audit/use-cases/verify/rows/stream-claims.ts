import type { EventData, RecordedEvent } from '../../../../ledger/rules/event.ts';
import { authFromData, spendAuthDigest } from '../../../../accounts/rules/spend/spend-auth.ts';
import { type Address, chainIdOf } from '../../../../base/values/primitives.ts';
import { bytesToHex } from 'viem/utils';
import type { AnyClaim, Claim } from '../../../../ledger/store/lane-command.ts';
import {
  unexplainedTransferClaims,
  spendClaims,
  sweepClaim,
} from '../../../../payments/store/recorded-claims.ts';
import { firingClaim } from '../../../../ledger/store/streams.ts';
import { paymentOf, type PaymentRows } from './payment-rows.ts';

/** The types of events that begin a holder of claims; a payment may begin in the middle of its stream. */
export const claimingTypes = [
  'settlement_started',
  'payment_recovered',
  'spend_accepted',
  'call_triggered',
  'operator_sweep_recorded',
  'operator_transfer_recorded',
] as const;

/** A claim that must be in the database, or may be only while its payment's call is in the outbox. */
export interface StreamClaim {
  readonly claim: AnyClaim;
  readonly stream: string;
  /** The payment whose call must be in the outbox for the claim to be held; undefined: it is held. */
  readonly withCallOf: string | undefined;
}

/** The claims of the payment of a stream. */
export function claimsOfPayment(stream: string, payment: PaymentRows | undefined): StreamClaim[] {
  return (payment?.claims ?? []).map(({ claim, held }) => ({
    claim,
    stream,
    withCallOf: held === 'certain' ? undefined : payment?.key,
  }));
}

/** The claims that a whole stream holds, whatever it is of. */
export function claimsOfStream(events: readonly RecordedEvent[]): StreamClaim[] {
  const [first] = events;
  if (!first) return [];
  const { stream } = first;
  const of = (claims: readonly Claim[]): StreamClaim[] =>
    claims.map((claim) => ({ claim, stream, withCallOf: undefined }));
  switch (first.type) {
    case 'spend_accepted':
      return of(claimsOfSpend(first.data, events));
    case 'call_triggered': {
      const { trigger: kind, trigger_name: name, trigger_id: id, body_sha256: binding } = first.data;
      return of([firingClaim({ kind, name, id }, binding)]);
    }
    case 'operator_sweep_recorded':
      return of([sweepClaim(first.data)]);
    case 'operator_transfer_recorded': {
      const last = events.at(-1);
      return of(last?.type === 'operator_transfer_recorded' ? unexplainedTransferClaims(last.data) : []);
    }
    default:
      return claimsOfPayment(stream, paymentOf(events));
  }
}

/**
 * A spend that was released has freed its nonce; if it may be public it stays bound to its request. The claim of the request is that of
 * the first spend which the same authorization made: `isBound` says so of a later one.
 */
function claimsOfSpend(
  accepted: EventData<'spend_accepted'>,
  events: readonly RecordedEvent[],
): readonly Claim[] {
  const { network, contract, binding } = accepted;
  const chainId = chainIdOf(network) ?? 0;
  const auth = authFromData(accepted);
  const digest = bytesToHex(spendAuthDigest({ chainId, contract: contract as Address }, auth));
  const { nonce, request } = spendClaims({ chainId, contract }, auth, digest, binding);
  const released = events.find(({ type }) => type === 'spend_released');
  if (released?.type !== 'spend_released') return [request, nonce];
  return released.data.may_have_landed ? [request] : [];
}

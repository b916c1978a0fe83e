import type { EventData } from '../../ledger/rules/event.ts';
import type { Fingerprint } from '../rules/payment.ts';
import { placeData, type PlacedTransfer } from '../rules/chain-transfer.ts';
import type { LaneCommand } from '../../ledger/store/lane-command.ts';
import { paymentClaim, paymentKey, transferClaim } from './claims.ts';

/** A payment that landed and has no call. */
export interface CalllessPayment extends Fingerprint {
  readonly symbol: string;
  readonly decimals: number;
  readonly payTo: string;
  readonly amount: bigint;
  readonly transaction: string;
  readonly place: PlacedTransfer;
}

/**
 * The append that records it, in a stream that its own key names: its refund is due. Its fingerprint and its transfer are claimed, so
 * that it is recorded once, whichever process finds it.
 */
export function recoverPayment(
  payment: CalllessPayment,
  found: Pick<EventData<'payment_recovered'>, 'generation' | 'refused'>,
): LaneCommand {
  const { network, transferMethod, asset, payer, nonce, symbol, decimals, payTo, amount } = payment;
  const { transaction, place } = payment;
  const terms = { transfer_method: transferMethod, symbol, decimals, pay_to: payTo, amount: String(amount) };
  const named = { network, asset, payer, payment_nonce: nonce };
  const data = { ...named, ...terms, transaction, ...placeData(place), ...found };
  return {
    stream: paymentKey(payment),
    expect: 0,
    events: [{ type: 'payment_recovered', data }],
    claims: [paymentClaim(payment, 'recovered'), transferClaim(network, transaction, place.logIndex, nonce)],
  };
}

import type { EventData } from '../../ledger/rules/event.ts';
import type { Caip2, Hex } from '../../base/values/primitives.ts';
import type { Claim } from '../../ledger/store/lane-command.ts';
import { transferClaim } from './claims.ts';

interface Place {
  readonly network: string;
  readonly transaction: string;
  readonly log_index: number;
}

/** The claim of the transfer that refunded a payment. */
export function refundClaim({ network, transaction, log_index }: Place, nonce: string): Claim {
  return transferClaim(network as Caip2, transaction, log_index, `refund:${nonce}`);
}

export function sweepClaim({ network, transaction, log_index }: Place): Claim {
  return transferClaim(network as Caip2, transaction, log_index, 'sweep');
}

/** The claims that the record of a transfer without a payment holds: its transfer, then the one that gave it back. */
export function unexplainedTransferClaims(record: EventData<'operator_transfer_recorded'>): Claim[] {
  const { returned } = record;
  const network = record.network as Caip2;
  return [
    transferClaim(network, record.transaction, record.log_index, 'unexplained'),
    ...(returned ? [transferClaim(network, returned.transaction, returned.log_index, 'return')] : []),
  ];
}

/**
 * The claims of a spend, however the authorization is spelled. `nonce`: one spend at a time per account and nonce. `request`:
 * one request per spend; it outlives the other, and is freed only if the spend was not made public.
 * @param digest EIP-712 digest of everything that is signed
 */
export function spendClaims(
  { chainId, contract }: { readonly chainId: number; readonly contract: string },
  { commitment, nonce }: { readonly commitment: string; readonly nonce: bigint },
  digest: Hex,
  binding: string,
): { readonly nonce: Claim; readonly request: Claim } {
  const of = { owner: commitment, scope: `${chainId}/${contract}`, binding };
  return {
    nonce: { kind: 'spend_auth', key: String(nonce), ...of },
    request: { kind: 'spend_request', key: digest, ...of },
  };
}

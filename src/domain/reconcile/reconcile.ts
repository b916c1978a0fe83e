/**
 * What reconciling the ledger with the chain can say of a fact or a transfer. A `break` is wrong until somebody explains
 * it. An `open` item is one that time or the operator will close: a block that is not final, an outcome that nobody knows
 * yet, money that is owed back. Both sides of an `ok` one agree.
 */
export const itemClasses = {
  /** The ledger and the chain say the same. */
  matched: 'ok',
  /** The same, but one of them says it in another period. */
  timing: 'ok',
  /** Prepaid credits that were claimed to a payee. */
  spend: 'ok',
  refund: 'ok',
  sweep: 'ok',
  /** Settled by the ledger, in a block that is not final yet, or in none yet. */
  not_final: 'open',
  /** Nobody knows the outcome. */
  unknown: 'open',
  /** Paid, never to be delivered, and not given back. */
  refund_due: 'open',
  missing_on_chain: 'break',
  on_chain_without_event: 'break',
  amount_mismatch: 'break',
  asset_mismatch: 'break',
  payee_mismatch: 'break',
  /** Its transfer belongs to another fact. */
  duplicate_claim: 'break',
  /** What was paid is none of the options of its quote. */
  quote_terms_differ: 'break',
  /** Money left a payee, and no sweep or refund says so. */
  foreign_use: 'break',
  token_decimals_differ: 'break',
} as const satisfies Record<string, 'ok' | 'open' | 'break'>;
export type ItemClass = keyof typeof itemClasses;

export const allClasses = Object.keys(itemClasses) as ItemClass[];

/** A transfer of a token as the chain's log has it; amounts in atoms, hex lower-case. */
export interface ChainTransfer {
  readonly network: string;
  readonly asset: string;
  readonly from: string;
  readonly to: string;
  readonly amount: bigint;
  readonly transaction: string;
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
}

/** Where money is looked after: one token at one payee. */
export interface Account {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
}

export function accountKey({ network, asset, payTo }: Account): string {
  return `${network}/${asset}/${payTo}`;
}

/** A token as somebody's terms describe it. */
export interface TokenTerms {
  readonly network: string;
  readonly asset: string;
  readonly symbol: string;
  readonly decimals: number;
}

/** The blocks of a period on one network, both ends included; `to` is before `from` where it holds none. */
export interface BlockRange {
  readonly from: bigint;
  readonly to: bigint;
  /** The period's end is behind a final block: nothing can come to it any more. */
  readonly isCovered: boolean;
}

/** Times are RFC 3339 UTC in milliseconds, as the ledger writes them; `from` inclusive, `to` exclusive. */
export interface PeriodOfTime {
  readonly from: string;
  readonly to: string;
}

export function transferKey(transfer: Pick<ChainTransfer, 'network' | 'transaction' | 'logIndex'>): string {
  return `${transactionKey(transfer)}/${transfer.logIndex}`;
}

export function transactionKey({
  network,
  transaction,
}: {
  readonly network: string;
  readonly transaction: string;
}): string {
  return `${network}/${transaction}`;
}

/** What the receipt of a transaction tells, where it was asked for one. */
export type Evidence =
  | {
      readonly kind: 'receipt';
      readonly blockNumber: bigint;
      readonly isReverted: boolean;
      readonly transfers: readonly ChainTransfer[];
      /** Which transfer each payment authorization moved. */
      readonly authorizations: readonly {
        readonly asset: string;
        readonly payer: string;
        readonly nonce: string;
        readonly logIndex: number;
      }[];
    }
  /** The node has heard of it, and it is in no block. */
  | { readonly kind: 'pending' }
  | { readonly kind: 'absent' };

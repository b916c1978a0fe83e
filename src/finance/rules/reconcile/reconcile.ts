import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';

/**
 * The classes of items in a reconciliation of the ledger with the chain. `break`: the sides do not match and the operator
 * must explain it. `open`: time or the operator will close it (a block that is not final, an unknown settlement, a refund
 * due). `ok`: both sides agree.
 */
export const itemClasses = {
  /** The ledger and the chain agree. */
  matched: 'ok',
  /** They agree, but one side is in another period. */
  timing: 'ok',
  /** A spend that was paid out to a payee. */
  spend: 'ok',
  refund: 'ok',
  sweep: 'ok',
  /** Came without a payment, and is kept as income. */
  income: 'ok',
  /** Came without a payment, and was given back: both transfers. */
  returned: 'ok',
  /** The operator's own: from a payee to itself, or from another account of the operator. */
  own: 'ok',
  /** Settled by the ledger; its block is not final, or it is in no block yet. */
  not_final: 'open',
  /** The settlement's outcome is unknown. */
  unknown: 'open',
  /** Paid, will not be delivered, and not refunded as a whole. */
  refund_due: 'open',
  /** Came without a payment, and its owner is not known yet. */
  suspense: 'open',
  missing_on_chain: 'break',
  on_chain_without_event: 'break',
  amount_mismatch: 'break',
  asset_mismatch: 'break',
  payee_mismatch: 'break',
  /** Its transfer belongs to another fact. */
  duplicate_claim: 'break',
  /** The payment matches none of its quote's options. */
  quote_terms_differ: 'break',
  /** Tokens left a payee without a recorded sweep or refund. */
  foreign_use: 'break',
  token_decimals_differ: 'break',
} as const satisfies Record<string, 'ok' | 'open' | 'break'>;
export type ItemClass = keyof typeof itemClasses;

export const allClasses = Object.keys(itemClasses) as ItemClass[];

/** One token at one payee. */
export interface Account {
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
}

export function accountKey({ network, asset, payTo }: Account): string {
  return `${network}/${asset}/${payTo}`;
}

/** Adds to the sum of an account, or of the key of one. */
export function addTo(sums: Map<string, bigint>, of: Account | string, atoms: bigint): void {
  const key = typeof of === 'string' ? of : accountKey(of);
  sums.set(key, (sums.get(key) ?? 0n) + atoms);
}

/** A token as described by a quote, a payment or the configuration. */
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
  /** A final block is after the period's end: the period cannot change any more. */
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

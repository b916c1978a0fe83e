import type { EventData } from '../events/event.ts';
import type { Account } from './reconcile.ts';
import type { CallStatus, PaymentStatus } from '../events/descriptor.ts';

/** Where on the chain a transfer stands. */
export interface Place {
  readonly blockNumber: bigint;
  readonly blockHash: string;
  readonly logIndex: number;
}

/** One payment as the ledger tells it, from its start to where it stands. */
export interface PaymentFact extends Account {
  readonly quoteDigest: string;
  /** The event that started it; while it is settled, the one that did that. */
  seq: number;
  readonly symbol: string;
  readonly decimals: number;
  readonly payer: string;
  readonly nonce: string;
  readonly signedAmount: bigint;
  readonly startedAt: string;
  status: PaymentStatus;
  /** What the ledger says was settled; what was signed before that. */
  amount: bigint;
  settledAt: string | undefined;
  transaction: string | undefined;
  place: Place | undefined;
  call: CallStatus;
  callId: number | undefined;
  isRefunded: boolean;
  /** What of the quote's terms it does not fit. */
  readonly differs: string | undefined;
}

/** Money that left on purpose. `payTo` is where it came from, which may be no payee. */
export interface OutFact extends Account, Place {
  readonly of: 'refund' | 'sweep';
  readonly seq: number;
  readonly recordedAt: string;
  readonly to: string;
  readonly amount: bigint;
  readonly transaction: string;
  readonly quoteDigest: string | undefined;
}

/** Prepaid credits that a contract paid out for an operator; neither their token nor who got them is in the ledger. */
export interface SpendFact {
  readonly seq: number;
  readonly network: string;
  readonly contract: string;
  readonly operator: string;
  readonly amount: bigint;
  /** Undefined where the chain was only seen to have paid it before. */
  readonly transaction: string | undefined;
  readonly recordedAt: string;
}

/** Of a fact to the period. */
export type Position = 'before' | 'in' | 'after';

const termNames = ['network', 'asset', 'pay_to', 'amount', 'decimals', 'symbol'] as const;

/** The term in which a payment differs from the option of its quote that is nearest to it. */
export function termsDiffer(
  quote: EventData<'quote_issued'> | undefined,
  payment: EventData<'settlement_started'>['payment'],
): string | undefined {
  if (!quote) return 'quote';
  const differing = quote.options.map((option) => termNames.filter((name) => option[name] !== payment[name]));
  return differing.toSorted((a, b) => a.length - b.length)[0]?.[0];
}

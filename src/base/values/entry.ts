/** A unit of account: a token or the coin of one network, or the currency of credit. */
export interface Commodity {
  /** Valid in beancount unquoted, and in hledger in quotes: capitals, digits, hyphens; one name, one commodity. */
  readonly name: string;
  /** Its part of account names, after the network. */
  readonly tag: string;
  /** CAIP-2; undefined for credit. */
  readonly network: string | undefined;
  /** The token's contract, or the contract of prepaid credits; undefined for credit and for a chain's own coin. */
  readonly asset: string | undefined;
  readonly symbol: string;
  readonly decimals: number;
}

/** `atoms`, above 0, on the debit side of one account and the credit side of another. */
export interface Move {
  readonly debit: string;
  readonly credit: string;
  readonly commodity: Commodity;
  readonly atoms: bigint;
}

export type Category =
  | 'payment'
  | 'confirmation'
  | 'reversal'
  | 'delivery'
  | 'dead_letter'
  | 'requeue'
  | 'refund_grant'
  | 'refund'
  | 'sweep'
  | 'suspense'
  | 'suspense_income'
  | 'suspense_return'
  | 'own_transfer'
  | 'transfer_reversal'
  | 'gas'
  | 'gas_reversal'
  | 'credit_grant'
  | 'top_up'
  | 'top_up_reversal'
  | 'credit_use'
  | 'credit_correction'
  | 'credit_expiry'
  | 'conversion_close'
  | 'spend_earned'
  | 'spend_paid_out'
  | 'spend_lost';

/** The payment that an entry is about. */
export interface EntryPayment {
  readonly serviceId: number;
  readonly jobIndex: number;
  /** Undefined before its call is enqueued. */
  readonly callId: number | undefined;
  readonly nonce: string;
  /** Of the request that it was made for; undefined for a recovered one without redelivery. */
  readonly requestId: string | undefined;
  readonly payer: string;
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  /** Where its transfer is on the chain; undefined while that is not proven. */
  readonly place: { readonly blockNumber: bigint; readonly logIndex: number } | undefined;
}

/** The postings of one event. */
export interface Entry {
  /** Undefined for the entry that closes a period: it has no event. */
  readonly seq: number | undefined;
  /** That of the event. */
  readonly stream: string | undefined;
  /** The event's type. */
  readonly event: string;
  readonly category: Category;
  /** RFC 3339, as recorded. */
  readonly recordedAt: string;
  /** The block's time for a transaction on a chain, undefined if the node did not report it; else `recordedAt`. */
  readonly occurredAt: string | undefined;
  readonly moves: readonly Move[];
  readonly payment: EntryPayment | undefined;
  /** The name of the credit account that it is about. */
  readonly accountName: string | undefined;
  readonly quoteDigest: string | undefined;
  /** Which service issued that quote; undefined for a 402 answer, and if the quote is lost. */
  readonly quoteSource: string | undefined;
  readonly counterparty: string | undefined;
  readonly transaction: string | undefined;
  readonly block: string | undefined;
  readonly logIndex: number | undefined;
  /** A machine-readable code or a model's name. */
  readonly memo: string | undefined;
}

/** Atoms as decimal text with all the token's decimals: exact, and never in scientific notation. */
export function decimalText(atoms: bigint, decimals: number): string {
  const sign = atoms < 0n ? '-' : '';
  const digits = String(atoms < 0n ? -atoms : atoms).padStart(decimals + 1, '0');
  if (decimals === 0) return sign + digits;
  return `${sign}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

export interface Balance {
  readonly account: string;
  readonly commodity: Commodity;
  /** Above 0 on the debit side. */
  readonly atoms: bigint;
}

/** The balance of each account in each commodity: debits less credits. */
export class Balances {
  readonly #accounts = new Map<string, Map<Commodity, bigint>>();

  post({ debit, credit, commodity, atoms }: Move): void {
    this.add(debit, commodity, atoms);
    this.add(credit, commodity, -atoms);
  }

  add(account: string, commodity: Commodity, atoms: bigint): void {
    let amounts = this.#accounts.get(account);
    if (!amounts) this.#accounts.set(account, (amounts = new Map<Commodity, bigint>()));
    amounts.set(commodity, (amounts.get(commodity) ?? 0n) + atoms);
  }

  /** Whether the account was ever used with the commodity. */
  has(account: string, commodity: Commodity): boolean {
    return this.#accounts.get(account)?.has(commodity) ?? false;
  }

  of(account: string, commodity: Commodity): bigint {
    return this.#accounts.get(account)?.get(commodity) ?? 0n;
  }

  /** Sorted by account and commodity in code unit order, zeros included. */
  list(): Balance[] {
    const all = [...this.#accounts].flatMap(([account, amounts]) =>
      [...amounts].map(([commodity, atoms]) => ({ account, commodity, atoms })),
    );
    return all.toSorted((a, b) => order(a.account, b.account) || order(a.commodity.name, b.commodity.name));
  }
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

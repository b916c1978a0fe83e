import type { CreditSide } from '../../../ledger/rules/descriptor.ts';
import { CreditOrder, isParted } from './credit-parts.ts';
import { eventDescriptors, hasAspect, type LedgerEvent } from '../../../ledger/rules/event.ts';

/** One move of credit: both sides change by the same amount. */
export interface Posting {
  readonly accountId: number;
  readonly from: CreditSide;
  readonly to: CreditSide;
  readonly amountMicros: bigint;
}

/** The posting of an event; undefined if no credit moves. */
export function postingOf(event: LedgerEvent): Posting | undefined {
  if (!hasAspect(event, 'credit')) return undefined;
  const [from, to] = eventDescriptors[event.type].credit;
  return {
    accountId: event.data.account_id,
    from,
    to,
    amountMicros: BigInt(event.data.amount_micros),
  };
}

/** An account's balance by its events, in micros. `granted` and `bought` are sources, so they are below zero. */
export type CreditBalance = Readonly<Record<CreditSide, bigint>>;

/** Of an account without postings. */
export const noCredit: CreditBalance = {
  available: 0n,
  held: 0n,
  granted: 0n,
  bought: 0n,
  expired: 0n,
  used: 0n,
};

/** The balances of all accounts: a fold over their events and nothing else. The sides of each add up to zero. */
export function foldCredit(events: Iterable<LedgerEvent>): ReadonlyMap<number, CreditBalance> {
  const balances = new Map<number, CreditBalance>();
  for (const event of events) {
    const posting = postingOf(event);
    if (!posting) continue;
    const { accountId, from, to, amountMicros } = posting;
    const before = balances.get(accountId) ?? noCredit;
    balances.set(accountId, {
      ...before,
      [from]: before[from] - amountMicros,
      [to]: before[to] + amountMicros,
    });
  }
  return balances;
}

/** Sides that never go below zero; the others are the operator's. */
const nonNegative = ['available', 'held', 'used'] as const;

/** The balances of all accounts, event by event. */
export class CreditCheck {
  readonly #balances = new Map<number, Record<CreditSide, bigint>>();
  readonly #order = new CreditOrder();
  /** The stream of a completion whose process had ended, while its capture may follow. */
  #recovered: string | undefined;

  /**
   * Applies the next event of a stream. Returns the problem, or undefined if no such side goes below zero, and an account's granted and
   * bought credit are its available and held amounts.
   */
  apply(event: LedgerEvent, stream: string): string | undefined {
    if (event.type === 'chat_completed')
      this.#recovered = event.data.ending === 'recovered' ? stream : undefined;
    const posting = postingOf(event);
    if (!posting) return undefined;
    const { accountId, from, to, amountMicros } = posting;
    const balance = this.#balances.get(accountId) ?? { ...noCredit };
    this.#balances.set(accountId, balance);
    balance[from] -= amountMicros;
    balance[to] += amountMicros;
    const short = nonNegative.find((side) => balance[side] < 0n);
    if (short)
      return `account ${accountId} has ${balance[short]} micros ${short}: more credit was moved than it had`;
    if (!isParted(event)) return undefined;
    this.#order.apply({ ...event, stream }, this.#recovered === stream);
    const { granted, bought } = this.#order.of(accountId);
    return granted < 0n || bought < 0n || granted + bought !== balance.available + balance.held
      ? `account ${accountId} has ${granted} granted and ${bought} bought micros, which are not the ${balance.available} that are available and the ${balance.held} that are held`
      : undefined;
  }
}

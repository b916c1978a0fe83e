import { isBookedByOthers } from '../../../audit/rules/bookkeeping/account.ts';
import type { AccountMap } from '../../../base/values/account-map.ts';
import { type Balance, Balances, type Commodity, type Entry } from '../../../base/values/entry.ts';
import { currencyCommodity } from '../../../audit/rules/bookkeeping/commodity.ts';
import type { Rate, Rates } from '../../../audit/rules/bookkeeping/rates.ts';
import type { Period } from '../../../base/values/period.ts';
import { utc } from '../../../base/values/time-zone.ts';
import type { Books, BooksPart } from './books.ts';
import type { EntryPart } from './kept-books.ts';

/** One line of a transaction: above 0 a debit. */
export interface JournalPosting {
  readonly account: string;
  readonly commodity: Commodity;
  readonly atoms: bigint;
}

/** A balance that is brought forward. */
export interface OpeningBalance extends Balance {
  readonly isAsserted: boolean;
}

/** How one tool's journal is written. Dates are `YYYY-MM-DD`. */
export interface JournalStyle {
  head(period: Period): string;
  commodity(commodity: Commodity, days: JournalDays): string;
  /** With the code that a map of accounts gives it. */
  account(account: string, days: JournalDays, code: string | undefined): string;
  /** The balances at the period's start, brought forward. */
  opening(balances: readonly OpeningBalance[], days: JournalDays): string;
  /** An account that is used for the first time: its balance of the commodity was zero. */
  unused(balance: Balance, days: JournalDays): string;
  /** `day`: on which it was recorded. */
  entry(part: EntryPart, postings: readonly JournalPosting[], day: string): string;
  /** The balances with which the journals before have ended, if this one continues them. */
  continued(balances: readonly Balance[], days: JournalDays): string;
  closing(balances: readonly Balance[], days: JournalDays): string;
  /** What a unit of a commodity is worth. */
  price(rate: Rate): string;
}

/**
 * Journals have days only: balances are brought forward on the day before the period and asserted at both ends of it, except those of
 * accounts to which the operator books in journals that include this one.
 */
export interface JournalDays {
  readonly before: string;
  readonly first: string;
  /** The last day of the period. */
  readonly last: string;
  readonly after: string;
}

const dayMs = 86_400_000;

function daysOf({ fromMs, toMs, zone = utc }: Period): JournalDays {
  const [first, last] = [zone.dayOf(fromMs), zone.dayOf(toMs - 1)];
  return { before: dayBeside(first, -1), first, last, after: dayBeside(last, 1) };
}

function dayBeside(day: string, days: number): string {
  return utc.dayOf(utc.startOf(day) + days * dayMs);
}

/**
 * The journal of one period: complete, or the continuation of those before it, whose accounts and balances it knows from the same
 * books. Accounts and commodities are declared before their first use.
 */
export async function* journalOf(
  { period, continuedAtMs, rates, accountMap, parts }: Books,
  style: JournalStyle,
): AsyncGenerator<string> {
  const { zone = utc } = period;
  const fromMs = continuedAtMs ?? period.fromMs;
  const shown = { ...period, fromMs };
  const journal = new Journal(style, daysOf(shown), accountMap);
  yield style.head(shown);
  let isShown = continuedAtMs === undefined;
  for await (const part of parts()) {
    const recordedMs = part.kind === 'entry' ? Date.parse(part.entry.recordedAt) : undefined;
    if (!isShown && (part.kind === 'closing' || (recordedMs !== undefined && recordedMs >= fromMs))) {
      isShown = true;
      yield journal.continued();
    }
    const text =
      part.kind === 'entry' ? journal.entry(part, zone.dayOf(recordedMs ?? 0)) : journal.balances(part);
    if (isShown) yield text;
  }
  if (rates) yield journal.prices(rates);
}

/** What a journal has declared so far, and the balances that it leads to. */
class Journal {
  readonly #declared = new Set<string>();
  readonly #used = new Balances();
  readonly #style: JournalStyle;
  readonly #days: JournalDays;
  readonly #map: AccountMap | undefined;

  constructor(style: JournalStyle, days: JournalDays, map: AccountMap | undefined) {
    this.#style = style;
    this.#days = days;
    this.#map = map;
  }

  entry(part: EntryPart, day: string): string {
    const postings = postingsOf(part.entry);
    const unused = postings.filter(({ account, commodity }) => !this.#used.has(account, commodity));
    const declared = unused.map((posting) => {
      const zero = this.#isAsserted(posting) ? this.#style.unused({ ...posting, atoms: 0n }, this.#days) : '';
      return `\n${this.#declare(posting)}${zero}`;
    });
    for (const { account, commodity, atoms } of postings) this.#used.add(account, commodity, atoms);
    return declared.join('') + this.#style.entry(part, postings, day);
  }

  balances({ kind, balances }: Exclude<BooksPart, EntryPart>): string {
    const shown = balances.filter(({ atoms }) => kind === 'closing' || atoms !== 0n);
    const declared = shown.map((balance) => this.#declare(balance));
    for (const { account, commodity, atoms } of shown)
      this.#used.add(account, commodity, kind === 'opening' ? atoms : 0n);
    const texts = declared.join('');
    if (kind === 'closing') {
      const asserted = shown.filter((balance) => this.#isAsserted(balance));
      return texts + (asserted.length > 0 ? this.#style.closing(asserted, this.#days) : '');
    }
    const opening = shown.map((balance) => ({ ...balance, isAsserted: this.#isAsserted(balance) }));
    return texts + (opening.length > 0 ? this.#style.opening(opening, this.#days) : '');
  }

  continued(): string {
    const balances = this.#used.list().filter((balance) => this.#isAsserted(balance));
    return balances.length > 0 ? this.#style.continued(balances, this.#days) : '';
  }

  /** The rates of its commodities in the period. */
  prices(rates: Rates): string {
    const { first, last } = this.#days;
    const stated = [...this.#declared].toSorted().flatMap((name) => rates.of(name, first, last));
    const currencies = new Set(stated.map(({ currency }) => currency));
    const undeclared = [...currencies].toSorted().filter((currency) => !this.#declared.has(currency));
    const commodities = undeclared.map((name) => this.#style.commodity(currencyCommodity(name), this.#days));
    return `${commodities.join('')}\n${stated.map((rate) => this.#style.price(rate)).join('')}`;
  }

  #isAsserted({ account }: Pick<Balance, 'account'>): boolean {
    return !isBookedByOthers(account) && !this.#map?.isRenamed(account);
  }

  #declare({ account, commodity }: Pick<JournalPosting, 'account' | 'commodity'>): string {
    const texts: string[] = [];
    if (!this.#declared.has(commodity.name)) texts.push(this.#style.commodity(commodity, this.#days));
    if (!this.#declared.has(account))
      texts.push(this.#style.account(account, this.#days, this.#map?.codeOf(account)));
    this.#declared.add(commodity.name).add(account);
    return texts.join('');
  }
}

/** What a journal says of an entry, by the names of its tags. */
export function entryTags(
  { entry, payoutBatch }: EntryPart,
  memo?: string,
): Readonly<Record<string, string | undefined>> {
  const { payment, accountName } = entry;
  return {
    event: entry.event,
    recorded: entry.recordedAt,
    occurred: entry.occurredAt,
    quote: entry.quoteDigest,
    quote_source: entry.quoteSource,
    transaction: entry.transaction,
    block: entry.block,
    memo,
    job: payment && `${payment.serviceId}/${payment.jobIndex}`,
    call: payment?.callId === undefined ? undefined : String(payment.callId),
    nonce: payment?.nonce,
    request: payment?.requestId,
    account_name: accountName,
    payout_batch: payoutBatch,
  };
}

/** The postings of an entry, summed by account and commodity. */
function postingsOf({ moves }: Entry): JournalPosting[] {
  const sums = new Balances();
  for (const move of moves) sums.post(move);
  return sums.list().filter(({ atoms }) => atoms !== 0n);
}

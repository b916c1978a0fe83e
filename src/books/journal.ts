import { type Balance, Balances, type Commodity, type Entry } from '../domain/bookkeeping/entry.ts';
import type { Period } from '../domain/values/period.ts';
import { utc } from '../domain/values/time-zone.ts';
import type { Books } from './books.ts';

/** One line of a transaction: above 0 a debit. */
export interface JournalPosting {
  readonly account: string;
  readonly commodity: Commodity;
  readonly atoms: bigint;
}

/** How one tool's journal is written. Dates are `YYYY-MM-DD`. */
export interface JournalStyle {
  head(period: Period): string;
  commodity(commodity: Commodity, days: JournalDays): string;
  account(account: string, days: JournalDays): string;
  /** The balances at the period's start, brought forward. */
  opening(balances: readonly Balance[], days: JournalDays): string;
  /** An account that is used for the first time: its balance of the commodity was zero. */
  unused(balance: Balance, days: JournalDays): string;
  /** `day`: on which it was recorded. */
  entry(entry: Entry, postings: readonly JournalPosting[], day: string): string;
  closing(balances: readonly Balance[], days: JournalDays): string;
}

/** Journals have days only: balances are brought forward on the day before the period and asserted at both ends of it. */
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

/** The complete journal of one period. Accounts and commodities are declared before their first use. */
export async function* journalOf({ period, parts }: Books, style: JournalStyle): AsyncGenerator<string> {
  const days = daysOf(period);
  const { zone = utc } = period;
  const declared = new Set<string>();
  const used = new Balances();
  const declare = ({ account, commodity }: Pick<JournalPosting, 'account' | 'commodity'>): string => {
    const texts: string[] = [];
    if (!declared.has(commodity.name)) texts.push(style.commodity(commodity, days));
    if (!declared.has(account)) texts.push(style.account(account, days));
    declared.add(commodity.name).add(account);
    return texts.join('');
  };
  yield style.head(period);
  for await (const part of parts()) {
    if (part.kind === 'entry') {
      const postings = postingsOf(part.entry);
      for (const posting of postings) {
        if (used.has(posting.account, posting.commodity)) continue;
        used.add(posting.account, posting.commodity, 0n);
        yield `\n${declare(posting)}${style.unused({ ...posting, atoms: 0n }, days)}`;
      }
      yield style.entry(part.entry, postings, zone.dayOf(Date.parse(part.entry.recordedAt)));
      continue;
    }
    const balances = part.balances.filter(({ atoms }) => part.kind === 'closing' || atoms !== 0n);
    for (const balance of balances) {
      used.add(balance.account, balance.commodity, 0n);
      yield declare(balance);
    }
    if (balances.length > 0) yield style[part.kind](balances, days);
  }
}

/** The postings of an entry, summed by account and commodity. */
function postingsOf({ moves }: Entry): JournalPosting[] {
  const sums = new Balances();
  for (const move of moves) sums.post(move);
  return sums.list().filter(({ atoms }) => atoms !== 0n);
}

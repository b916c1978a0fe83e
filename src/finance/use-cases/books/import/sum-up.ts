import type { AccountMap } from '../../../../base/values/account-map.ts';
import type { ImportTerms, TaxTerms } from '../../../../base/values/accounting.ts';
import type { Balance, Commodity } from '../../../../base/values/entry.ts';
import { instantText, type Period } from '../../../../base/values/period.ts';
import { nextMonth, utc } from '../../../../base/values/time-zone.ts';
import { accounts } from '../../../../audit/rules/bookkeeping/account.ts';
import type { Rates } from '../../../../audit/rules/bookkeeping/rates.ts';
import { microsInCent, missingRate, roundTo, worthOn } from '../../../../audit/rules/bookkeeping/worth.ts';
import { missingForTax, taxIn, taxOf } from '../../../../audit/rules/bookkeeping/tax.ts';
import type { Books } from '../books.ts';
import type { EntryPart } from '../kept-books.ts';
import { ExportError } from '../source.ts';

/** A debit of one account and a credit of another one, in cents above 0. */
export interface ImportLine {
  readonly debit: string;
  readonly credit: string;
  readonly cents: bigint;
}

/** A journal of an accounting program: what moved for one reason on one day, or in one month. */
export interface ImportJournal {
  /** Unique in the period: its day and a counter. */
  readonly number: string;
  /** `YYYY-MM-DD`: that of recording, or the last of the month or period. */
  readonly day: string;
  /** A category of entries, `tax`, or `revaluation`. */
  readonly reason: string;
  readonly lines: readonly ImportLine[];
}

/**
 * The books of a period in the currency of an accounting program. Each move has the value of its day. The last journal leaves each asset
 * and liability with the value of its balance at the rates of the period's last day, and every account exact to the cent: so the months
 * that are imported one after the other end with the balances of the journals.
 * @throws ExportError with everything that is missing: rates, countries, rates of tax
 */
export async function sumUp(
  { period, rates, accountMap, parts }: Books,
  terms: ImportTerms,
  tax: TaxTerms | undefined,
): Promise<ImportJournal[]> {
  if (!rates) throw new ExportError(`accounting programs keep ${terms.currency}: give --rates`);
  const sums = new Sums(period, { rates, terms, tax, accountMap });
  for await (const part of parts()) {
    if (part.kind === 'entry') sums.take(part);
    else sums.balance(part.kind, part.balances);
  }
  return sums.journals();
}

interface SumTerms {
  readonly rates: Rates;
  readonly terms: ImportTerms;
  readonly tax: TaxTerms | undefined;
  readonly accountMap: AccountMap | undefined;
}

/** What moved between two accounts for one reason by one journal's day, in micros. */
interface Sum {
  readonly debit: string;
  readonly credit: string;
  readonly reason: string;
  readonly day: string;
  micros: bigint;
}

class Sums {
  readonly #period: Period;
  readonly #of: SumTerms;
  readonly #sums = new Map<string, Sum>();
  /** By account, in micros: what moved, and what opening and closing balances are worth. */
  readonly #moved = new Map<string, bigint>();
  readonly #worth = { opening: new Map<string, bigint>(), closing: new Map<string, bigint>() };
  /** The books have no balance of these. */
  readonly #owedTaxes = new Set<string>();
  readonly #missing = new Set<string>();

  constructor(period: Period, of: SumTerms) {
    this.#period = period;
    this.#of = of;
  }

  take({ entry }: EntryPart): void {
    const day = this.#journalDay(Date.parse(entry.recordedAt));
    const rateDay = entry.recordedAt.slice(0, 10);
    for (const move of entry.moves) {
      const micros = this.#value(move.atoms, move.commodity, rateDay);
      this.#add({ ...move, reason: entry.category, day, micros });
      const { tax } = this.#of;
      if (!tax) continue;
      const found = taxOf(entry, move, tax);
      const missing = missingForTax(found);
      if (missing !== undefined) this.#missing.add(missing);
      if (found.kind !== 'taxed') continue;
      const owed = this.#nameOf(`Liabilities:Tax:${found.country}`);
      this.#owedTaxes.add(owed);
      const isSale = found.atoms >= 0n;
      const sides = isSale ? { debit: move.credit, credit: owed } : { debit: owed, credit: move.debit };
      this.#add({ ...sides, reason: 'tax', day, micros: taxIn(micros, found.rate) });
    }
  }

  balance(at: 'opening' | 'closing', balances: readonly Balance[]): void {
    const { fromMs, toMs } = this.#period;
    const day = instantText((at === 'opening' ? fromMs : toMs) - 1).slice(0, 10);
    for (const { account, commodity, atoms } of balances) {
      // earlier income is what it was worth then
      if (atoms === 0n || !this.#isRevalued(account)) continue;
      add(this.#worth[at], account, this.#value(atoms, commodity, day));
    }
  }

  journals(): ImportJournal[] {
    if (this.#missing.size > 0)
      throw new ExportError(
        `no file was written, because something is missing: ${[...this.#missing].join('; ')}`,
      );
    const booked = new Map<string, bigint>();
    const given = new Map<string, { exact: bigint; cents: bigint }>();
    const journals = new Map<string, Sum[]>();
    for (const sum of this.#sums.values())
      journals.set(`${sum.day} ${sum.reason}`, [...(journals.get(`${sum.day} ${sum.reason}`) ?? []), sum]);
    const listed: Omit<ImportJournal, 'number'>[] = [];
    for (const key of [...journals.keys()].toSorted()) {
      const lines = (journals.get(key) ?? []).flatMap(({ debit, credit, reason, micros }) => {
        // parts of a cent are carried over to the next journal of the same accounts
        const pair = `${reason} ${debit} ${credit}`;
        const before = given.get(pair) ?? { exact: 0n, cents: 0n };
        const exact = before.exact + micros;
        const cents = centsOf(exact) - before.cents;
        given.set(pair, { exact, cents: before.cents + cents });
        add(booked, debit, cents);
        add(booked, credit, -cents);
        return cents === 0n ? [] : [{ debit, credit, cents }];
      });
      const [day = '', reason = ''] = key.split(' ');
      if (lines.length > 0) listed.push({ day, reason, lines });
    }
    const revaluation = this.#revaluation(booked);
    if (revaluation.length > 0)
      listed.push({ day: this.#lastDay(), reason: 'revaluation', lines: revaluation });
    return numbered(listed);
  }

  /** From what is booked to what each account has to end with, to the cent. */
  #revaluation(booked: ReadonlyMap<string, bigint>): ImportLine[] {
    const fx = this.#nameOf(accounts.fx);
    const { opening, closing } = this.#worth;
    const all = new Set([...this.#moved.keys(), ...opening.keys(), ...closing.keys()]);
    all.delete(fx);
    return [...all].toSorted().flatMap((account) => {
      const target = this.#isRevalued(account)
        ? centsOf(closing.get(account) ?? 0n) - centsOf(opening.get(account) ?? 0n)
        : centsOf(this.#moved.get(account) ?? 0n);
      const cents = target - (booked.get(account) ?? 0n);
      if (cents === 0n) return [];
      return cents > 0n
        ? [{ debit: account, credit: fx, cents }]
        : [{ debit: fx, credit: account, cents: -cents }];
    });
  }

  #add({ debit, credit, reason, day, micros }: Sum): void {
    if (debit === credit || micros === 0n) return;
    const key = `${day} ${reason} ${debit} ${credit}`;
    const known = this.#sums.get(key);
    if (known) known.micros += micros;
    else this.#sums.set(key, { debit, credit, reason, day, micros });
    add(this.#moved, debit, micros);
    add(this.#moved, credit, -micros);
  }

  /** In micros of the currency. */
  #value(atoms: bigint, commodity: Commodity, day: string): bigint {
    const { rates, terms } = this.#of;
    const worth = worthOn(atoms, commodity, day, { rates, currency: terms.currency });
    if (worth !== undefined) return worth;
    this.#missing.add(missingRate(commodity, terms.currency, day));
    return 0n;
  }

  /** Whether a balance has another value at the period's end: all but income, expenses and the equity of earlier periods. */
  #isRevalued(account: string): boolean {
    if (this.#owedTaxes.has(account)) return false;
    return /^(?:Assets|Liabilities):/.test(account) || account === this.#nameOf(accounts.conversion);
  }

  #nameOf(account: string): string {
    return this.#of.accountMap?.nameOf(account) ?? account;
  }

  #lastDay(): string {
    const { toMs, zone = utc } = this.#period;
    return zone.dayOf(toMs - 1);
  }

  #journalDay(recordedMs: number): string {
    const { zone = utc } = this.#period;
    const day = zone.dayOf(recordedMs);
    if (this.#of.terms.each === 'day') return day;
    const last = zone.dayOf(zone.startOf(nextMonth(day.slice(0, 7))) - 1);
    return last < this.#lastDay() ? last : this.#lastDay();
  }
}

function numbered(journals: readonly Omit<ImportJournal, 'number'>[]): ImportJournal[] {
  const counts = new Map<string, number>();
  return journals.map((journal) => {
    const count = (counts.get(journal.day) ?? 0) + 1;
    counts.set(journal.day, count);
    return { ...journal, number: `${journal.day.replaceAll('-', '')}-${String(count).padStart(2, '0')}` };
  });
}

function centsOf(micros: bigint): bigint {
  return roundTo(microsInCent, micros);
}

function add(sums: Map<string, bigint>, account: string, amount: bigint): void {
  sums.set(account, (sums.get(account) ?? 0n) + amount);
}

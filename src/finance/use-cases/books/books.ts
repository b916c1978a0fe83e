import type { AccountMap } from '../../../base/values/account-map.ts';
import type { TaxTerms } from '../../../base/values/accounting.ts';
import { accounts } from '../../../audit/rules/bookkeeping/account.ts';
import { type Balance, Balances, type Entry, type Commodity } from '../../../base/values/entry.ts';
import {
  findCurrency,
  type Rates,
  unclearCurrency,
  type Valuation,
  valueOf,
} from '../../../audit/rules/bookkeeping/rates.ts';
import { instantText, type Period, periodName } from '../../../base/values/period.ts';
import { foldBooks } from './folded-books.ts';
import type { EntryPart, KeptPart } from './kept-books.ts';
import { readPostedBooks } from './posted-books.ts';
import { ExportError, type LedgerSource } from './source.ts';

/** The books of a period, in this order: how they open, every entry, how they close. */
export type BooksPart =
  | { readonly kind: 'opening'; readonly balances: readonly Balance[] }
  | EntryPart
  | { readonly kind: 'closing'; readonly balances: readonly Balance[] };

export interface BooksOptions {
  readonly rates?: Rates | undefined;
  /** The currency of the rows' worth, where rates name several. */
  readonly valueIn?: string | undefined;
  /** The currency of credit, for a ledger that does not say it. */
  readonly currency?: string | undefined;
  /** Other names of accounts. */
  readonly accountMap?: AccountMap | undefined;
  /** Tax that prices include. */
  readonly tax?: TaxTerms | undefined;
  /** A later moment of the period, at which a journal begins that continues those of the period before it. */
  readonly continuedAtMs?: number | undefined;
}

/** The books of a period. */
export interface Books {
  readonly period: Period;
  /** Where a journal begins that continues those of the year, which began with the period; undefined for a journal by itself. */
  readonly continuedAtMs: number | undefined;
  /** The events before its end. */
  readonly events: number;
  /** What somebody stated that commodities are worth. */
  readonly rates: Rates | undefined;
  /** The currency in which rows say their worth. */
  readonly valuation: Valuation | undefined;
  /** Whose names the accounts have. */
  readonly accountMap: AccountMap | undefined;
  /** What of the income of sales is tax. */
  readonly tax: TaxTerms | undefined;
  parts(): AsyncIterable<BooksPart>;
}

/**
 * Prepares the books of a period. An event belongs to a period by its recording time, so the events of a period are adjacent
 * and the books of a past period never change.
 * @throws ExportError if the given ledger is incomplete or not readable
 */
export async function openBooks(
  source: LedgerSource,
  period: Period,
  { rates, valueIn, currency, continuedAtMs, accountMap, tax }: BooksOptions = {},
): Promise<Books> {
  if (source.pool && !source.isCompleteTo(period.toMs))
    throw new ExportError(`the books of ${periodName(period)} are not complete before it is over`);
  const kept = source.pool
    ? await readPostedBooks(source.pool, period, currency)
    : await foldBooks(source, period, currency);
  const valuation = rates && { rates, currency: valueCurrency(rates, valueIn) };
  return {
    period,
    continuedAtMs,
    events: kept.events,
    rates,
    valuation,
    accountMap,
    tax,
    parts: () => {
      const parts = partsOf(kept.keep(), period, rates);
      return accountMap ? renamed(parts, accountMap) : parts;
    },
  };
}

function valueCurrency(rates: Rates, given: string | undefined): string {
  const currency = findCurrency(rates, given);
  if (currency !== undefined) return currency;
  throw new ExportError(unclearCurrency(rates));
}

async function* partsOf(
  kept: AsyncIterable<KeptPart>,
  period: Period,
  rates: Rates | undefined,
): AsyncGenerator<BooksPart> {
  let balances = new Balances();
  for await (const part of kept) {
    if (part.kind === 'balances') {
      balances = openingOf(part.balances);
      yield { kind: 'opening', balances: balances.list() };
    } else {
      for (const move of part.entry.moves) balances.post(move);
      yield part;
    }
  }
  const closing = rates && closeConversion(balances, period, rates);
  if (closing) {
    for (const move of closing.moves) balances.post(move);
    yield { kind: 'entry', entry: closing, payoutBatch: undefined };
  }
  yield { kind: 'closing', balances: balances.list() };
}

async function* renamed(parts: AsyncIterable<BooksPart>, map: AccountMap): AsyncGenerator<BooksPart> {
  for await (const part of parts) {
    if (part.kind === 'entry')
      yield { ...part, entry: { ...part.entry, moves: part.entry.moves.map((move) => map.move(move)) } };
    else yield { ...part, balances: map.balances(part.balances) };
  }
  const found = map.findParent();
  if (found)
    throw new ExportError(
      `--accounts: ${found.parent} is the parent of ${found.child}, and tools would add the one to the other: give it another name`,
    );
}

/** Assets and liabilities are brought forward; earlier income, expenses and conversions are summed up as equity. */
function openingOf(before: Balances): Balances {
  const opening = new Balances();
  for (const { account, commodity, atoms } of before.list())
    if (atoms !== 0n) opening.add(isOfOnePeriod(account) ? accounts.opening : account, commodity, atoms);
  return opening;
}

function isOfOnePeriod(account: string): boolean {
  return account.startsWith('Income:') || account.startsWith('Expenses:') || account === accounts.conversion;
}

/**
 * What the conversions of a period gained or lost: the tokens that went into `Equity:Conversion`, at the rates of its last day, against
 * the credit that came out. After this entry the account is worth nothing at those rates. Undefined where that is so already.
 * @throws ExportError where a token that was converted has no rate in the currency of credit
 */
function closeConversion(balances: Balances, { toMs }: Period, rates: Rates): Entry | undefined {
  const held = balances
    .list()
    .filter(({ account, atoms }) => account === accounts.conversion && atoms !== 0n);
  const currency = held.find(({ commodity }) => commodity.network === undefined)?.commodity;
  if (!currency) return undefined;
  const at = instantText(toMs - 1);
  const stated: string[] = [];
  const worth = held.reduce((sum, { commodity, atoms }) => {
    if (commodity === currency) return sum + atoms;
    const rate = rateOf(commodity, at.slice(0, 10), currency, rates);
    stated.push(`${commodity.name} ${rate.text}`);
    return sum + valueOf(atoms, commodity, rate);
  }, 0n);
  if (worth === 0n) return undefined;
  const { conversion, fx } = accounts;
  const sides = worth > 0n ? { debit: fx, credit: conversion } : { debit: conversion, credit: fx };
  return {
    seq: undefined,
    stream: undefined,
    event: 'closing',
    category: 'conversion_close',
    recordedAt: at,
    occurredAt: at,
    moves: [{ ...sides, commodity: currency, atoms: worth > 0n ? worth : -worth }],
    payment: undefined,
    accountName: undefined,
    quoteDigest: undefined,
    quoteSource: undefined,
    counterparty: undefined,
    transaction: undefined,
    block: undefined,
    logIndex: undefined,
    memo: stated.join(', '),
  };
}

function rateOf(commodity: Commodity, day: string, currency: Commodity, rates: Rates) {
  const rate = rates.on(day, commodity.name, currency.name);
  if (rate) return rate;
  throw new ExportError(
    `--rates has no rate of ${commodity.name} in ${currency.name} on ${day} or before: credit was bought with it, and the conversion is closed at that rate`,
  );
}

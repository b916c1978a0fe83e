import type { AgedItem } from '../../../audit/rules/bookkeeping/aging.ts';
import type { AccountMap } from '../../../base/values/account-map.ts';
import type { TaxTerms } from '../../../base/values/accounting.ts';
import { accounts } from '../../../audit/rules/bookkeeping/account.ts';
import { type Balance, Balances, type Entry, type Commodity } from '../../../base/values/entry.ts';
import { ReopenedQuotes, type SkimmedEvent } from '../../../audit/rules/bookkeeping/reopened-quotes.ts';
import {
  findCurrency,
  type Rates,
  unclearCurrency,
  type Valuation,
  valueOf,
} from '../../../audit/rules/bookkeeping/rates.ts';
import { Bookkeeper } from '../../../audit/rules/bookkeeping/bookkeeper.ts';
import { currencyIn } from '../../../audit/rules/bookkeeping/commodity.ts';
import { decodeLeaf, type EventData, type RecordedEvent } from '../../../ledger/rules/event.ts';
import { instantText, type Period } from '../../../base/values/period.ts';
import { PayoutBatches, sweepName } from './payout-batches.ts';
import { ExportError, type LedgerSource } from './source.ts';

export interface EntryPart {
  readonly kind: 'entry';
  readonly entry: Entry;
  /** The sweep that is this entry, or that carried its payment away; undefined if none was recorded before the period's end. */
  readonly payoutBatch: string | undefined;
}

/** The books of a period, in this order: how they open, every entry, how they close. */
export type BooksPart =
  | { readonly kind: 'opening'; readonly balances: readonly Balance[] }
  | EntryPart
  | {
      readonly kind: 'closing';
      readonly balances: readonly Balance[];
      /** The payments without an outcome, which no balance has. */
      readonly openSettlements: readonly AgedItem[];
    };

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

/** The books of a period. The ledger was read once already, so its errors are known before anything is written. */
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
  { rates, valueIn, currency: given, continuedAtMs, accountMap, tax }: BooksOptions = {},
): Promise<Books> {
  const reopened = new ReopenedQuotes();
  const batches = new PayoutBatches();
  let currency: string | undefined;
  let events = 0;
  let hasPassed = false;
  for await (const leaf of leavesOf(source)) {
    const { seq, at, ...event } = skim(leaf);
    hasPassed = Date.parse(at) >= period.toMs;
    if (hasPassed) break;
    events += 1;
    if (seq !== events)
      throw new ExportError(
        `event ${seq} is in the place of event ${events}: books need every event from the first on, without gaps`,
      );
    reopened.skim(event);
    if (event.type === 'operator_sweep_recorded') batches.take(event.data as SweepData);
    currency ??= currencyIn(event);
  }
  if (!hasPassed && !source.isCompleteTo(period.toMs))
    throw new ExportError(
      `the file has no event of ${instantText(period.toMs)} or later, so it may have been exported before the period ended: export the ledger again, or give the time of the export with --exported-at`,
    );
  if (currency !== undefined && given !== undefined && currency !== given)
    throw new ExportError(otherCurrency(given, currency));
  const valuation = rates && { rates, currency: valueCurrency(rates, valueIn) };
  const found = { events, reopened, batches, currency: currency ?? given };
  return {
    period,
    continuedAtMs,
    events,
    rates,
    valuation,
    accountMap,
    tax,
    parts: () => {
      const parts = keepBooks(source, period, rates, found);
      return accountMap ? renamed(parts, accountMap) : parts;
    },
  };
}

export function otherCurrency(given: string, currency: string): string {
  return `--currency ${given}: the ledger says that its credit is in ${currency}`;
}

type SweepData = EventData<'operator_sweep_recorded'>;

/** What a first pass over the ledger finds out. */
interface FirstPass {
  /** The events before the end of the period. */
  readonly events: number;
  readonly reopened: ReopenedQuotes;
  readonly batches: PayoutBatches;
  /** That of credit. */
  readonly currency: string | undefined;
}

function batchOf(event: RecordedEvent, { payment }: Entry, batches: PayoutBatches): string | undefined {
  if (event.type === 'operator_sweep_recorded') return sweepName(event.data);
  return payment?.place && batches.of({ ...payment, ...payment.place });
}

function valueCurrency(rates: Rates, given: string | undefined): string {
  const currency = findCurrency(rates, given);
  if (currency !== undefined) return currency;
  throw new ExportError(unclearCurrency(rates));
}

async function* keepBooks(
  source: LedgerSource,
  period: Period,
  rates: Rates | undefined,
  { events, reopened, batches, currency }: FirstPass,
): AsyncGenerator<BooksPart> {
  const bookkeeper = new Bookkeeper((digest) => reopened.has(digest), currency);
  let balances = new Balances();
  let isOpen = false;
  const open = (): BooksPart => {
    isOpen = true;
    balances = openingOf(balances);
    return { kind: 'opening', balances: balances.list() };
  };
  let nowMs = 0;
  let remaining = events;
  for await (const leaf of leavesOf(source)) {
    if (remaining-- === 0) break;
    const event = decode(leaf);
    nowMs = Math.max(nowMs, Date.parse(event.at));
    if (!isOpen && nowMs >= period.fromMs) yield open();
    const entry = bookkeeper.post(event);
    if (!entry) continue;
    for (const move of entry.moves) balances.post(move);
    if (isOpen) yield { kind: 'entry', entry, payoutBatch: batchOf(event, entry, batches) };
  }
  if (!isOpen) yield open();
  const closing = rates && closeConversion(balances, period, rates);
  if (closing) {
    for (const move of closing.moves) balances.post(move);
    yield { kind: 'entry', entry: closing, payoutBatch: undefined };
  }
  yield { kind: 'closing', balances: balances.list(), openSettlements: bookkeeper.openSettlements() };
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

async function* leavesOf(source: LedgerSource): AsyncGenerator<Buffer> {
  for await (const leaves of source.leaves()) yield* leaves;
}

type Skimmed = SkimmedEvent & { readonly seq: number; readonly at: string };

function skim(leaf: Buffer): Skimmed {
  let read: Partial<Skimmed> | null = null;
  try {
    read = JSON.parse(leaf.toString('utf8')) as Partial<Skimmed> | null;
  } catch {
    // reported below
  }
  if (typeof read?.at !== 'string' || typeof read.seq !== 'number' || typeof read.data !== 'object')
    throw new ExportError(
      'the input has a line that is not an event: give a file made by tollbook export --format jsonl',
    );
  return read as Skimmed;
}

function decode(leaf: Buffer): RecordedEvent {
  try {
    return decodeLeaf(leaf);
  } catch (error) {
    const { seq } = skim(leaf);
    throw new ExportError(`event ${seq} cannot be read: run tollbook verify to find out why`, {
      cause: error,
    });
  }
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

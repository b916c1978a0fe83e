import type pg from 'pg';
import { CreditOrder, type CreditParts, isParted } from '../../../accounts/rules/credit/credit-parts.ts';
import type { Commodity, Entry } from '../../../base/values/entry.ts';
import { isTriggeredStream } from '../../../base/values/triggers/trigger.ts';
import { accounts } from '../../rules/bookkeeping/account.ts';
import {
  type BookedStep,
  type BookStep,
  bookStep,
  isOfBooks,
  typesOfBooksAlone,
} from '../../rules/bookkeeping/book-step.ts';
import { type BooksState, Payees } from '../../rules/bookkeeping/books-state.ts';
import { Commodities, currencyCommodity } from '../../rules/bookkeeping/commodity.ts';
import { type RecordedEvent, typesListing } from '../../../ledger/rules/event.ts';
import {
  type BookRows,
  type CommodityRow,
  type CreditPartsRow,
  type PayeeRow,
  type PostingRow,
  readBookState,
  readConversions,
  readDebits,
} from '../../../ledger/store/book-rows.ts';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';

const ofCredit: ReadonlySet<string> = new Set(typesListing('readModels', 'credit'));
const standalone: ReadonlySet<string> = new Set(typesOfBooksAlone);

/** Whether the entry of an event depends on the events before it in its stream. */
export function dependsOnStream({
  type,
  stream,
}: {
  readonly type: string;
  readonly stream: string;
}): boolean {
  if (isTriggeredStream(stream)) return false;
  if (ofCredit.has(type)) return stream.startsWith('chat:');
  return !standalone.has(type) || isTransfer(stream);
}

export const isTransfer = (stream: string): boolean => stream.startsWith('transfer:');

/** What a read of the ledger has of a step. */
export interface StepRead {
  readonly generation: number;
  /** The step's events are those after this one. */
  readonly after: number;
  readonly last: number;
  /** The events of the step. */
  readonly events: readonly RecordedEvent[];
  /** The whole streams up to `last` of those that depend on their streams. */
  readonly streams: readonly (readonly RecordedEvent[])[];
}

/** Adds what the entries of a step's events depend on: the streams and conversions of quotes, and the parts of corrected captures. */
export async function completeStep(
  client: Pick<pg.Pool, 'query'>,
  { generation, after, last, events, streams }: StepRead,
): Promise<BookStep> {
  const own = new Map([...events, ...streams.flat()].map((event) => [event.seq, event]));
  const next = [...own.values()].filter((event) => event.seq > after && isOfBooks(event));
  const known = new Set(streams.map(([first]) => first?.stream ?? ''));
  const named = next.flatMap((event) =>
    event.type === 'credit_topped_up' || event.type === 'credit_reversed' ? event.data.quote_digest : [],
  );
  const others = await readStreamsUpTo(
    client,
    [...new Set(named)].filter((one) => !known.has(one)),
    last,
  );
  const quotes = new Set([...[...known].filter((stream) => stream.startsWith('0x')), ...named]);
  const conversions = await readConversions(client, generation, [...quotes], after);
  const past = [...streams, ...others].flat().filter((event) => event.seq <= after && isOfBooks(event));
  const corrected = new Set(next.flatMap(({ type, stream }) => (type === 'credit_corrected' ? stream : [])));
  const captures = past.filter(({ type, stream }) => type === 'credit_captured' && corrected.has(stream));
  const debits = await readDebits(
    client,
    generation,
    captures.map(({ seq }) => seq),
    [accounts.grantedCredit, accounts.boughtCredit],
  );
  const used = new Map(
    [...debits].map(([seq, [granted, bought]]): [number, CreditParts] => [seq, { granted, bought }]),
  );
  return { past: [...past, ...conversions], used, next };
}

/** The books of a generation at the beginning of a step, and what of them is stored. */
export interface KnownBooks {
  readonly state: BooksState;
  readonly currency: string | undefined;
  readonly commodities: readonly CommodityRow[];
  readonly payees: readonly PayeeRow[];
  readonly credit: readonly CreditPartsRow[];
}

const creditId = 0;

/** What a generation's books know of the accounts, tokens and payees of a step. */
export async function readBooks(
  client: Pick<pg.Pool, 'query'>,
  generation: number,
  { next }: BookStep,
): Promise<KnownBooks> {
  const ids = new Set(next.flatMap((event) => (isParted(event) ? event.data.account_id : [])));
  const stored = await readBookState(client, generation, [...ids]);
  const { commodities, payees, credit } = stored;
  const unknown = currencyCommodity();
  const currency = commodities.find(({ id, name }) => id === creditId && name !== unknown.name)?.name;
  const state = {
    commodities: new Commodities(
      commodities.filter(({ id }) => id !== creditId).map((row) => [row.key, commodityOf(row)]),
    ),
    payees: new Payees(payees.map(({ network, address, since }) => [`${network}/${address}`, since])),
    credit: new CreditOrder(
      credit.map((row) => [row.account_id, { granted: BigInt(row.granted), bought: BigInt(row.bought) }]),
    ),
  };
  return { state, currency, ...stored };
}

/** The next step's entries as rows, with what has changed of the books. */
export function bookRowsOf(
  books: KnownBooks,
  step: BookStep,
): { readonly rows: BookRows; readonly unbooked: readonly number[] } {
  const booked = bookStep(books.state, books.currency, step);
  const places = new Map<string, number>();
  const placeOf = (account: string): number => {
    const place = places.get(account) ?? places.size + 1;
    places.set(account, place);
    return place;
  };
  const { commodities, payees, credit } = stateRows(books.state, booked.currency);
  const ids = new Map(commodities.map(({ key, id }) => [key, id]));
  const postings = postingsOf(booked.entries, books.state).map(({ day, ...row }) => ({
    ...row,
    day,
    debit: placeOf(row.debit),
    credit: placeOf(row.credit),
    commodity: ids.get(row.commodity) ?? creditId,
  }));
  const rows = {
    accounts: [...places.keys()],
    postings,
    commodities: changed(commodities, books.commodities),
    payees: changed(payees, books.payees),
    credit: changed(credit, books.credit),
  };
  return { rows, unbooked: booked.unbooked };
}

/** The rows that are not among the known ones. */
function changed<Row extends object>(rows: readonly Row[], known: readonly Row[]): Row[] {
  const texts = new Set(known.map(textOf));
  return rows.filter((row) => !texts.has(textOf(row)));
}

/** The same columns in the same order. */
function textOf(row: object): string {
  const { generation: _, ...columns } = row as Record<string, unknown>;
  return JSON.stringify(Object.entries(columns).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Entries as postings, with their days. */
export function postingsOf(
  entries: BookedStep['entries'],
  { commodities }: BooksState,
): (PostingRow & { readonly day: string })[] {
  const keys = new Map<Commodity, string>(commodities.list().map(([key, commodity]) => [commodity, key]));
  return entries.flatMap((entry) =>
    entry.moves.map(({ debit, credit, commodity, atoms }, i) => ({
      seq: entry.seq ?? 0,
      leg: i + 1,
      day: entry.recordedAt.slice(0, 10),
      category: entry.category,
      debit,
      credit,
      commodity: keys.get(commodity) ?? creditKey,
      atoms: String(atoms),
      quote: quoteNamedBy(entry),
    })),
  );
}

/** Of the currency of credit. Those of tokens and coins begin with their network. */
export const creditKey = 'credit';

function quoteNamedBy({ quoteDigest, stream }: Entry): string | null {
  return quoteDigest === undefined || quoteDigest === stream ? null : quoteDigest;
}

/** All that books know, as rows. */
export function stateRows(
  { commodities, payees, credit }: BooksState,
  currency: string | undefined,
): Pick<BookRows, 'commodities' | 'payees' | 'credit'> {
  const all = [[creditKey, currencyCommodity(currency)] as const, ...commodities.list()];
  return {
    commodities: all.map(([key, commodity], id) => {
      const { name, tag, symbol, decimals, network = null, asset = null } = commodity;
      return { id, key, name, tag, symbol, decimals, network, asset };
    }),
    payees: [...payees.list()].map(([payee, since]) => {
      const [network = '', address = ''] = payee.split('/');
      return { network, address, since };
    }),
    credit: [...credit.list()].map(([id, { granted, bought }]) => ({
      account_id: id,
      granted: String(granted),
      bought: String(bought),
    })),
  };
}

function commodityOf({ name, tag, symbol, decimals, network, asset }: CommodityRow): Commodity {
  return { name, tag, symbol, decimals, network: network ?? undefined, asset: asset ?? undefined };
}

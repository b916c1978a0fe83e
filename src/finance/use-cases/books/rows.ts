import { rateOn, worthOn } from '../../../audit/rules/bookkeeping/worth.ts';
import { type Valuation, valueDecimals } from '../../../audit/rules/bookkeeping/rates.ts';
import { type Tax, taxIn, taxOf } from '../../../audit/rules/bookkeeping/tax.ts';
import type { TaxTerms } from '../../../base/values/accounting.ts';
import { decimalText, type Entry, type Move } from '../../../base/values/entry.ts';
import type { Books } from './books.ts';
import type { EntryPart } from './kept-books.ts';
import type { Period } from '../../../base/values/period.ts';
import { utc } from '../../../base/values/time-zone.ts';

interface Row {
  readonly entry: Entry;
  readonly payoutBatch: string | undefined;
  readonly move: Move;
  /** On which it was recorded, in the zone of the period. */
  readonly day: string;
  /** Counted from 1 within the event. */
  readonly leg: number;
}

type Value = string | number | bigint | undefined;

export interface Column {
  readonly name: string;
  readonly type: 'text' | 'whole' | 'instant';
  of(row: Row): Value;
}

/** One row per move: an amount from the credit account to the debit account, never negative, in the token's units. */
const columns: readonly Column[] = [
  { name: 'seq', type: 'whole', of: ({ entry }) => optional(entry.seq) },
  { name: 'leg', type: 'whole', of: ({ leg }) => BigInt(leg) },
  { name: 'date', type: 'text', of: ({ day }) => day },
  { name: 'recorded_at', type: 'instant', of: ({ entry }) => entry.recordedAt },
  { name: 'occurred_at', type: 'instant', of: ({ entry }) => entry.occurredAt },
  { name: 'category', type: 'text', of: ({ entry }) => entry.category },
  { name: 'event', type: 'text', of: ({ entry }) => entry.event },
  { name: 'debit_account', type: 'text', of: ({ move }) => move.debit },
  { name: 'credit_account', type: 'text', of: ({ move }) => move.credit },
  { name: 'amount', type: 'text', of: ({ move }) => decimalText(move.atoms, move.commodity.decimals) },
  { name: 'commodity', type: 'text', of: ({ move }) => move.commodity.name },
  { name: 'token', type: 'text', of: ({ move }) => move.commodity.symbol },
  { name: 'token_address', type: 'text', of: ({ move }) => move.commodity.asset },
  { name: 'network', type: 'text', of: ({ move }) => move.commodity.network },
  { name: 'decimals', type: 'whole', of: ({ move }) => BigInt(move.commodity.decimals) },
  { name: 'atoms', type: 'text', of: ({ move }) => String(move.atoms) },
  { name: 'counterparty', type: 'text', of: ({ entry }) => entry.counterparty },
  { name: 'quote_digest', type: 'text', of: ({ entry }) => entry.quoteDigest },
  { name: 'quote_source', type: 'text', of: ({ entry }) => entry.quoteSource },
  { name: 'transaction', type: 'text', of: ({ entry }) => entry.transaction },
  { name: 'block', type: 'text', of: ({ entry }) => entry.block },
  { name: 'log_index', type: 'whole', of: ({ entry }) => optional(entry.logIndex) },
  { name: 'memo', type: 'text', of: ({ entry }) => entry.memo },
  { name: 'service_id', type: 'whole', of: ({ entry }) => optional(entry.payment?.serviceId) },
  { name: 'job_index', type: 'whole', of: ({ entry }) => optional(entry.payment?.jobIndex) },
  { name: 'call_id', type: 'whole', of: ({ entry }) => optional(entry.payment?.callId) },
  { name: 'payment_nonce', type: 'text', of: ({ entry }) => entry.payment?.nonce },
  { name: 'request_id', type: 'text', of: ({ entry }) => entry.payment?.requestId },
  { name: 'customer', type: 'text', of: ({ entry }) => entry.payment?.payer ?? entry.accountName },
  { name: 'account_name', type: 'text', of: ({ entry }) => entry.accountName },
  { name: 'payout_batch', type: 'text', of: ({ payoutBatch }) => payoutBatch },
];

/** With a valuation also the worth of each row on the day of its recording; empty if no rate is known for that day. */
function valueColumns(valuation: Valuation | undefined): readonly Column[] {
  if (!valuation) return [];
  const { currency } = valuation;
  const worth = (row: Row): string | undefined => {
    const micros = worthOf(row, valuation);
    return micros === undefined ? undefined : decimalText(micros, valueDecimals);
  };
  return [
    {
      name: 'rate',
      type: 'text',
      of: ({ entry, move }) => rateOn(move.commodity, entry.recordedAt.slice(0, 10), valuation),
    },
    { name: 'value', type: 'text', of: worth },
    { name: 'value_currency', type: 'text', of: () => currency },
  ];
}

/** In units of 10^-{@link valueDecimals} of the valuation's currency; undefined without a rate. */
function worthOf(row: Row, valuation: Valuation): bigint | undefined {
  const { atoms, commodity } = row.move;
  return worthOn(atoms, commodity, row.entry.recordedAt.slice(0, 10), valuation);
}

/** The columns of an export; with codes of accounts also those of the two accounts, with rates of tax the tax of sales. */
export function columnsOf({
  valuation,
  accountMap,
  tax,
}: Pick<Books, 'valuation' | 'accountMap' | 'tax'>): readonly Column[] {
  const codes: Column[] = accountMap
    ? [
        { name: 'debit_code', type: 'text', of: ({ move }) => accountMap.codeOf(move.debit) },
        { name: 'credit_code', type: 'text', of: ({ move }) => accountMap.codeOf(move.credit) },
      ]
    : [];
  return [...columns, ...valueColumns(valuation), ...codes, ...(tax ? taxColumns(tax, valuation) : [])];
}

/** Tax of the sales, in the row's commodity and in the currency of its value; with a note, and empty, where it is not known. */
function taxColumns(terms: TaxTerms, valuation: Valuation | undefined): Column[] {
  const found = ({ entry, move }: Row): Tax => taxOf(entry, move, terms);
  const taxed = (row: Row) => {
    const tax = found(row);
    return tax.kind === 'taxed' ? tax : undefined;
  };
  const amount = (row: Row): string | undefined => {
    const tax = taxed(row);
    return tax && decimalText(tax.atoms, row.move.commodity.decimals);
  };
  const worth = (row: Row): string | undefined => {
    const [tax, micros] = [taxed(row), valuation && worthOf(row, valuation)];
    if (!tax || micros === undefined) return undefined;
    const value = taxIn(micros, tax.rate);
    return decimalText(tax.atoms < 0n ? -value : value, valueDecimals);
  };
  return [
    { name: 'tax_country', type: 'text', of: (row) => taxed(row)?.country },
    { name: 'tax_rate', type: 'text', of: (row) => taxed(row)?.rate },
    { name: 'tax_amount', type: 'text', of: amount },
    ...(valuation ? [{ name: 'tax_value', type: 'text' as const, of: worth }] : []),
    { name: 'tax_note', type: 'text', of: (row) => taxNote(found(row)) },
  ];
}

function taxNote(tax: Tax): string | undefined {
  if (tax.kind === 'no_country') return 'customer without a country';
  return tax.kind === 'no_rate' ? `no rate of ${tax.of} in ${tax.country}` : undefined;
}

function optional(whole: number | undefined): bigint | undefined {
  return whole === undefined ? undefined : BigInt(whole);
}

export function rowsOf({ entry, payoutBatch }: EntryPart, { zone = utc }: Period): Row[] {
  const day = zone.dayOf(Date.parse(entry.recordedAt));
  return entry.moves.map((move, i) => ({ entry, payoutBatch, move, day, leg: i + 1 }));
}

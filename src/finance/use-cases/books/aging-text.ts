import { countOf } from '../../../base/values/count-text.ts';
import { type Commodity, decimalText } from '../../../base/values/entry.ts';
import { type Valuation, valueDecimals } from '../../../audit/rules/bookkeeping/rates.ts';
import { worthOn, worthText } from '../../../audit/rules/bookkeeping/worth.ts';
import { instantText } from '../../../base/values/period.ts';
import { type AgedRow, type AgedTotal, type Aging, bucketNames } from './age-books.ts';
import { csvLine } from '../../../base/values/csv-line.ts';
import { agingFormats } from '../../../base/values/format.ts';

/** The lines of an aging. The same ledger, date and rates always give the same bytes. Amounts are worth what rates say at that date. */
export function* agingText(aging: Aging, format: AgingFormat, valuation?: Valuation): Generator<string> {
  const worth = new Worth(aging.asOfMs, valuation);
  switch (format) {
    case 'text':
      return yield* linesOf(aging, worth);
    case 'csv':
      return yield* csvOf(aging, worth);
    case 'json':
      yield `${JSON.stringify(jsonOf(aging, worth), undefined, 2)}\n`;
  }
}

/** What amounts are worth at the date of an aging. */
class Worth {
  readonly valuation: Valuation | undefined;
  readonly #day: string;

  constructor(asOfMs: number, valuation: Valuation | undefined) {
    this.valuation = valuation;
    // an aging at the beginning of a month says how the one before has ended
    this.#day = instantText(asOfMs - 1).slice(0, 10);
  }

  /** Beside an amount, such as ` (3.26 USD)`; empty without rates. */
  beside(atoms: bigint, commodity: Commodity): string {
    const { valuation } = this;
    if (!valuation || commodity.name === valuation.currency) return '';
    return ` (${worthText(atoms, commodity, this.#day, valuation)})`;
  }

  /** Decimals; empty without a rate. */
  value(atoms: bigint, commodity: Commodity): string {
    const micros = this.valuation && worthOn(atoms, commodity, this.#day, this.valuation);
    return micros === undefined ? '' : decimalText(micros, valueDecimals);
  }

  /** For JSON. */
  fields(atoms: bigint, commodity: Commodity) {
    if (!this.valuation) return {};
    return { value: this.value(atoms, commodity) || null, value_currency: this.valuation.currency };
  }
}

function* linesOf({ asOfMs, totals, rows }: Aging, worth: Worth): Generator<string> {
  yield `What was open at ${instantText(asOfMs)}, by the time of recording; ages in days\n`;
  if (totals.length === 0) yield 'nothing\n';
  for (const { kind, commodity, count, buckets, total } of totals) {
    const { name, decimals } = commodity;
    yield `\n${kind.replace('_', ' ')}: ${decimalText(total, decimals)} ${name}${worth.beside(total, commodity)}, ${countOf(count, 'item')}\n`;
    for (const [bucket, atoms] of buckets)
      if (atoms !== 0n) yield `  ${bucket.padEnd(8)} ${decimalText(atoms, decimals).padStart(24)}\n`;
    for (const row of rows)
      if (row.kind === kind && row.commodity === commodity) yield `  ${rowText(row, worth)}\n`;
  }
}

function rowText(
  { name, counterparty, accountName, commodity, atoms, since, ageDays }: AgedRow,
  worth: Worth,
): string {
  const who = accountName ?? (counterparty === name ? undefined : counterparty);
  const of = who === undefined ? name : `${name}  ${who}`;
  return `${since}  ${countOf(ageDays, 'day')}  ${decimalText(atoms, commodity.decimals)}${worth.beside(atoms, commodity)}  ${of}`;
}

const header = [
  'kind',
  'name',
  'counterparty',
  'account_name',
  'since',
  'age_days',
  'bucket',
  'amount',
  'commodity',
  'token',
  'token_address',
  'network',
  'decimals',
  'atoms',
  'account',
];

function* csvOf({ rows }: Aging, worth: Worth): Generator<string> {
  const { valuation } = worth;
  yield csvLine([...header, ...(valuation ? ['value', 'value_currency'] : [])]);
  for (const row of rows) {
    const { commodity, atoms } = row;
    yield csvLine([
      row.kind,
      row.name,
      row.counterparty ?? '',
      row.accountName ?? '',
      row.since,
      String(row.ageDays),
      row.bucket,
      decimalText(atoms, commodity.decimals),
      commodity.name,
      commodity.symbol,
      commodity.asset ?? '',
      commodity.network ?? '',
      String(commodity.decimals),
      String(atoms),
      row.account ?? '',
      ...(valuation ? [worth.value(atoms, commodity), valuation.currency] : []),
    ]);
  }
}

function jsonOf({ asOfMs, totals, rows }: Aging, worth: Worth) {
  return {
    as_of: instantText(asOfMs),
    totals: totals.map((total) => totalJson(total, worth)),
    items: rows.map((row) => ({
      kind: row.kind,
      name: row.name,
      counterparty: row.counterparty,
      account_name: row.accountName,
      since: row.since,
      age_days: row.ageDays,
      bucket: row.bucket,
      commodity: row.commodity.name,
      atoms: String(row.atoms),
      ...worth.fields(row.atoms, row.commodity),
      account: row.account,
    })),
  };
}

function totalJson({ kind, commodity, count, buckets, total }: AgedTotal, worth: Worth) {
  const { name, symbol, asset, network, decimals } = commodity;
  return {
    kind,
    commodity: { name, token: symbol, token_address: asset, network, decimals },
    count,
    atoms: String(total),
    ...worth.fields(total, commodity),
    buckets: Object.fromEntries(bucketNames.map((bucket) => [bucket, String(buckets.get(bucket) ?? 0n)])),
  };
}

/** The formats of an aging. */
type AgingFormat = (typeof agingFormats)[number];

export function isAgingFormat(text: string): text is AgingFormat {
  return (agingFormats as readonly string[]).includes(text);
}

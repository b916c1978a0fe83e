import { countOf } from '../../../base/values/count-text.ts';
import { decimalText } from '../../../base/values/entry.ts';
import { instantText } from '../../../base/values/period.ts';
import { type AgedRow, type AgedTotal, type Aging, bucketNames } from './age-books.ts';
import { csvLine } from '../../../base/values/csv-line.ts';
import { agingFormats } from '../../../base/values/format.ts';

/** The lines of an aging. The same ledger and date always give the same bytes. */
export function* agingText(aging: Aging, format: AgingFormat): Generator<string> {
  switch (format) {
    case 'text':
      return yield* linesOf(aging);
    case 'csv':
      return yield* csvOf(aging);
    case 'json':
      yield `${JSON.stringify(jsonOf(aging), undefined, 2)}\n`;
  }
}

function* linesOf({ asOfMs, totals, rows }: Aging): Generator<string> {
  yield `What was open at ${instantText(asOfMs)}, by the time of recording; ages in days\n`;
  if (totals.length === 0) yield 'nothing\n';
  for (const { kind, commodity, count, buckets, total } of totals) {
    const { name, decimals } = commodity;
    yield `\n${kind.replace('_', ' ')}: ${decimalText(total, decimals)} ${name}, ${countOf(count, 'item')}\n`;
    for (const [bucket, atoms] of buckets)
      if (atoms !== 0n) yield `  ${bucket.padEnd(8)} ${decimalText(atoms, decimals).padStart(24)}\n`;
    for (const row of rows) if (row.kind === kind && row.commodity === commodity) yield `  ${rowText(row)}\n`;
  }
}

function rowText({ name, counterparty, accountName, commodity, atoms, since, ageDays }: AgedRow): string {
  const who = accountName ?? (counterparty === name ? undefined : counterparty);
  const of = who === undefined ? name : `${name}  ${who}`;
  return `${since}  ${ageDays} d  ${decimalText(atoms, commodity.decimals)}  ${of}`;
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

function* csvOf({ rows }: Aging): Generator<string> {
  yield csvLine(header);
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
    ]);
  }
}

function jsonOf({ asOfMs, totals, rows }: Aging) {
  return {
    as_of: instantText(asOfMs),
    totals: totals.map(totalJson),
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
      account: row.account,
    })),
  };
}

function totalJson({ kind, commodity, count, buckets, total }: AgedTotal) {
  const { name, symbol, asset, network, decimals } = commodity;
  return {
    kind,
    commodity: { name, token: symbol, token_address: asset, network, decimals },
    count,
    atoms: String(total),
    buckets: Object.fromEntries(bucketNames.map((bucket) => [bucket, String(buckets.get(bucket) ?? 0n)])),
  };
}

/** The formats of an aging. */
type AgingFormat = (typeof agingFormats)[number];

export function isAgingFormat(text: string): text is AgingFormat {
  return (agingFormats as readonly string[]).includes(text);
}

import { writeBooks } from '../../../src/finance/use-cases/books/format.ts';
import { openBooks } from '../../../src/finance/use-cases/books/books.ts';
import { ExportError, openDatabaseSource } from '../../../src/finance/use-cases/books/source.ts';
import { BooksError } from '../../../src/finance/rules/bookkeeping/books-error.ts';
import type { BookFormat } from '../../../src/base/values/format.ts';
import type { Period } from '../../../src/base/values/period.ts';
import { chart, credit } from '../chart.ts';
import { model } from '../credit.ts';
import type { YearLedger } from '../ledger.ts';
import { canonicalJson } from '../../../src/base/values/canonical-json.ts';
import type { World } from '../world.ts';
import type { Field, Plant } from './field.ts';

interface CreditData {
  readonly account_id: number;
  readonly amount_micros: string;
}

/** The export of a period in one format. */
async function exportOf(ledger: YearLedger, period: Period, format: BookFormat): Promise<string> {
  const books = await openBooks(await openDatabaseSource(ledger.pool), period);
  const chunks: Buffer[] = [];
  for await (const chunk of writeBooks(books, format)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/**
 * How many micros of credit an export in CSV has as revenue beyond those that customers had bought, by the model; undefined where the
 * ledger has no books.
 */
export async function excessRevenue(
  world: World,
  period: Period,
  given: string | undefined,
): Promise<bigint | undefined> {
  try {
    const soFar = { fromMs: period.fromMs, toMs: Math.min(period.toMs, world.nowMs) };
    const booked = chatRevenue(given ?? (await exportOf(world.ledger, soFar, 'csv')));
    return booked + world.model.balanceOf(chart.chat(model), credit, Infinity);
  } catch (error) {
    if (!(error instanceof BooksError || error instanceof ExportError)) throw error;
    return undefined;
  }
}

/** What the lines of an export credit to the income of chat, less what they debit. */
function chatRevenue(csv: string): bigint {
  const [header = '', ...lines] = csv.split('\r\n');
  const columns = header.split(',');
  const [debit, to, commodity, atoms] = ['debit_account', 'credit_account', 'commodity', 'atoms'].map(
    (name) => columns.indexOf(name),
  );
  let sum = 0n;
  for (const line of lines) {
    const fields = line.split(',');
    const of = (at: number | undefined): string => fields[at ?? -1] ?? '';
    if (of(commodity) !== credit) continue;
    if (of(to).startsWith('Income:Chat:')) sum += BigInt(of(atoms));
    if (of(debit).startsWith('Income:Chat:')) sum -= BigInt(of(atoms));
  }
  return sum;
}

/** An event of credit that is there, with its data. */
async function creditEvent(field: Field, where: string): Promise<{ seq: number; data: CreditData }> {
  const [row] = await field.world.ledger.asOwner(
    `select seq::int as seq, data::json as data from tollbook.event where ${where} order by seq limit 1`,
  );
  if (!row) throw new Error(`the ledger has no event where ${where}`);
  return row as { seq: number; data: CreditData };
}

const grant = (field: Field) => creditEvent(field, `type = 'credit_granted'`);
const purchase = (field: Field) => creditEvent(field, `type = 'credit_topped_up'`);

/** Credit that an operator has given away, and that is made revenue. */
export const revenue: readonly Plant[] = [
  {
    name: 'a grant is made a purchase, so that its use is revenue',
    async plant(field) {
      const [{ seq, data: granted }, { data: bought }] = [await grant(field), await purchase(field)];
      await field.world.ledger.asInsider(
        `update tollbook.event set type = 'credit_topped_up', data = $2 where seq = $1`,
        [seq, canonicalJson({ ...bought, ...granted })],
      );
      // such books are refused
      return {
        fault: seq,
        rows: ['account_credit', 'credit_request'],
        revenue: undefined,
        checkpoint: true,
      };
    },
  },
  {
    name: 'the use of granted credit is charged to a customer who bought credit, so that it is revenue',
    async plant(field) {
      const [{ data: granted }, bought] = [await grant(field), await purchase(field)];
      const { seq, data } = await creditEvent(
        field,
        `type = 'credit_captured' and seq > ${bought.seq} and position('"account_id":${granted.account_id},' in data) > 0`,
      );
      await field.rewrite(
        seq,
        `"account_id":${granted.account_id},`,
        `"account_id":${bought.data.account_id},`,
      );
      // of both customers
      const rows = ['account_credit', 'account_credit', 'account', 'account'];
      return { fault: seq, rows, revenue: BigInt(data.amount_micros), checkpoint: true };
    },
  },
  {
    name: 'granted credit is bought credit by the read model, so that its use would be revenue',
    async plant(field) {
      await field.world.ledger.asInsider(
        'update tollbook.account_credit set granted = 0, topped_up = topped_up + granted where granted > 0',
      );
      return { rows: ['account_credit'], named: ['granted is 0, by the events 5000000'] };
    },
  },
  {
    name: 'exports that somebody hands over have the use of granted credit as revenue',
    async plant(field) {
      await field.close();
      for (const format of ['csv', 'beancount', 'hledger'] as const) {
        const text = await exportOf(field.world.ledger, field.period, format);
        field.handed.set(format, text.replaceAll(chart.usedGrants, chart.chat(model)));
      }
      field.handed.set('summary', await exportOf(field.world.ledger, field.period, 'summary'));
      const used = field.world.model.balanceOf(chart.usedGrants, credit, Infinity);
      return { changed: [], replaced: ['csv', 'beancount', 'hledger'], revenue: -used };
    },
  },
];

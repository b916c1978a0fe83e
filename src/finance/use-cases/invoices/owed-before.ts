import type pg from 'pg';
import type { AgedItem } from '../../../audit/rules/bookkeeping/aging.ts';
import { readStream } from '../../../ledger/store/streams.ts';
import type { OwedAmount } from '../../rules/invoices/statement.ts';
import { ageLedger } from '../books/age-books.ts';

/**
 * What was owed to a customer at a moment, which the read models must have reached: the open items of the books that are theirs.
 * @param customer a wallet, or the name of a credit account
 * @param currency that of credit, for a ledger that does not say it
 * @throws ExportError if the read models have no open items yet
 */
export async function owedBefore(
  pool: pg.Pool,
  customer: string,
  atMs: number,
  currency: string | undefined,
): Promise<OwedAmount[]> {
  const { rows } = await ageLedger(pool, atMs, { currency });
  const owed: OwedAmount[] = [];
  for (const row of rows) {
    const { account, commodity, atoms } = row;
    if (account?.startsWith('Liabilities:') && (await customerOfItem(pool, row, atMs)) === customer)
      owed.push({ account, commodity, atoms });
  }
  return owed;
}

/** The customer whom entries of the item are about, as `customerOf` says. */
async function customerOfItem(
  pool: pg.Pool,
  { kind, name, counterparty, accountName }: AgedItem,
  atMs: number,
): Promise<string | undefined> {
  if (kind === 'granted_credit' || kind === 'bought_credit') return accountName ?? counterparty;
  // credit that was taken back: it is owed to the wallet that paid for it
  return counterparty?.startsWith('account:') ? payerOf(pool, name, atMs) : counterparty;
}

async function payerOf(pool: pg.Pool, quote: string, atMs: number): Promise<string | undefined> {
  const { events } = await readStream(pool, quote);
  const [payer] = events.flatMap((event) => {
    if (Date.parse(event.at) >= atMs) return [];
    if (event.type === 'settlement_started') return event.data.payment.payer;
    return event.type === 'payment_recovered' ? event.data.payer : [];
  });
  return payer;
}

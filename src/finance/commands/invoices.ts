import { writeFile } from 'node:fs/promises';
import type pg from 'pg';
import { readVerifier } from '../../audit/terminal/given-proof.ts';
import { ArgumentError, readOperator, readOptions, requireWritable } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { fail, finding, notDone, say } from '../../base/terminal/terminal.ts';
import { decimalText } from '../../base/values/entry.ts';
import { shortInstant } from '../../base/values/period.ts';
import { accountNamePattern } from '../../base/values/price.ts';
import { parseAddress } from '../../base/values/primitives.ts';
import { invoiceSeries } from '../../ledger/rules/invoice-events.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { InvoiceFold } from '../rules/invoices/invoice.ts';
import { StatementFold } from '../rules/invoices/statement.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { invoicePage, statementJson, statementPage } from '../use-cases/invoices/documents.ts';
import { invoiceNumber, issueInvoice, listInvoices } from '../use-cases/invoices/issue-invoice.ts';
import { owedBefore } from '../use-cases/invoices/owed-before.ts';
import { type ClosedEntries, readClosedEntries } from '../use-cases/invoices/read-closed.ts';
import { invoiceCommands } from '../terminal/invoice-descriptions.ts';
import { checkPeriodName, readClosed } from '../terminal/period-choice.ts';
import { namedPeriod } from '../terminal/period-text.ts';
import { refuseUnsealed } from '../terminal/require-sealed.ts';
import { readStatedValues } from '../terminal/stated-values.ts';
import { readValuation } from '../terminal/worth.ts';
import { readCurrency } from '../terminal/books-source.ts';

const documentFormats = ['page', 'json'] as const;

interface Given {
  readonly customer?: string | undefined;
  readonly format: string;
  readonly out?: string | undefined;
  readonly currency?: string | undefined;
  readonly pubkey?: string | undefined;
}

/** What both documents need. Throws an ArgumentError if it is wrong, before anything is opened. */
async function readDocument({ customer, format, out, pubkey, ...given }: Given) {
  if (customer === undefined || !accountNamePattern.test(customer))
    throw new ArgumentError('--customer is a wallet, or the name of a credit account');
  if (!(documentFormats as readonly string[]).includes(format))
    throw new ArgumentError(`--format is ${documentFormats.join(', ')}`);
  if (out !== undefined) await requireWritable('out', out);
  const read = {
    currency: readCurrency(given),
    verifier: pubkey === undefined ? undefined : await readVerifier(pubkey),
  };
  return { customer: parseAddress(customer) ?? customer, isPage: format === 'page', out, ...read };
}

export async function issue(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(invoiceCommands['invoices issue'], args);
  checkPeriodName(positionals);
  const document = await readDocument(values);
  const { customer, isPage, out } = document;
  const series = readSeries(values.series);
  // no default: the person who issues an invoice answers for it
  const operator = readOperator(values.by ?? '');
  const valuation = await readValuation(values);
  const { tax } = (await readStatedValues({ accounts: values.accounts })).accounting ?? {};
  return withLedger(async ({ pool, lane }) => {
    const found = await openClosed(pool, positionals, document);
    if (found.kind === 'ended') return found.code;
    const { closed, read } = found;
    const fold = new InvoiceFold(customer, { valuation, tax });
    for await (const entry of read.entries()) fold.take(entry);
    const result = fold.finish();
    if (result.kind === 'missing')
      return notDone(`no invoice was issued, because something is missing: ${result.missing.join('; ')}`);
    const { invoice } = result;
    const answer = await issueInvoice({ pool, lane }, { series, customer, closed, invoice, operator });
    if (answer.kind === 'refused') return notDone(`no invoice was issued: ${answer.message}`);
    const { number, document: json } = answer;
    const billTo = values['bill-to'];
    const page = () => invoicePage(invoice, { customer, period: closed.period }, { number, billTo });
    await write(isPage ? page() : json, out);
    const amount = `${decimalText(invoice.gross, invoice.decimals)} ${invoice.currency}`;
    fail(
      `${answer.kind === 'issued' ? 'Issued' : 'Issued before'}: invoice ${number} of ${amount} to ${customer} for ${namedPeriod(closed)}.`,
    );
    return exitCodes.done;
  });
}

export async function statement(args: readonly string[]): Promise<ExitCode> {
  const { values, positionals } = readOptions(invoiceCommands['invoices statement'], args);
  checkPeriodName(positionals);
  const document = await readDocument(values);
  const { customer, isPage, out } = document;
  const valuation = await readValuation(values);
  return withLedger(async ({ pool }) => {
    const found = await openClosed(pool, positionals, document);
    if (found.kind === 'ended') return found.code;
    const { closed, read } = found;
    const { period } = closed;
    const fold = new StatementFold(
      customer,
      await owedBefore(pool, customer, period.fromMs, document.currency),
    );
    for await (const entry of read.entries()) fold.take(entry);
    const written = isPage ? statementPage : statementJson;
    await write(written(fold.finish(), { customer, period }, valuation), out);
    return exitCodes.done;
  });
}

export async function list(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(invoiceCommands['invoices list'], args);
  const series = readSeries(values.series);
  const issued = await withLedger(({ pool }) => listInvoices(pool, series));
  if (issued.length === 0) say('No invoice of this series is issued.');
  for (const { at, data } of issued) {
    const [gross, tax] = [data.gross, data.tax].map((amount) => decimalText(BigInt(amount), data.decimals));
    const ends = [data.from_ms, data.to_ms].map((ms) => shortInstant(ms)).join('/');
    say(
      `${invoiceNumber(data)}  ${gross} ${data.currency}, tax ${tax}  ${data.customer}  ${ends}  by ${data.operator} on ${at}`,
    );
  }
  return exitCodes.done;
}

function readSeries(series: string | undefined): string {
  if (series !== undefined && invoiceSeries.test(series)) return series;
  throw new ArgumentError('--series is 1 to 16 capitals, digits and hyphens, such as 2026');
}

/** The closed period that is named, of sealed events that are those of its close; else why not was said. */
async function openClosed(
  pool: pg.Pool,
  positionals: readonly string[],
  { currency, verifier }: Awaited<ReturnType<typeof readDocument>>,
): Promise<
  | { readonly kind: 'closed'; readonly closed: ClosedPeriod; readonly read: ClosedEntries }
  | { readonly kind: 'ended'; readonly code: ExitCode }
> {
  const found = await readClosed(pool, positionals);
  if (found.kind === 'none') return { kind: 'ended', code: notDone(found.words) };
  const { closed } = found;
  const read = await readClosedEntries(pool, closed, currency);
  if (read.kind === 'not_as_closed') {
    const words = `${namedPeriod(closed)} is not as it was closed: somebody has changed events. Run tollbook verify`;
    return { kind: 'ended', code: finding(words) };
  }
  // the close's head is that of the events, so only those after it are compared with the newest one
  const { size, root } = closed.close.data.head;
  const since = { size, root: Buffer.from(root, 'base64') };
  const code = await refuseUnsealed({ 'require-sealed': true }, { pool, since }, read.events, verifier);
  return code === undefined ? { kind: 'closed', closed, read } : { kind: 'ended', code };
}

async function write(text: string, out: string | undefined): Promise<void> {
  if (out === undefined) process.stdout.write(text);
  else await writeFile(out, text);
}

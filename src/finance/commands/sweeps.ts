import { recordSweep, type Sweep, type SweepRefusal } from '../use-cases/refunds/record-sweep.ts';
import { chainMessages, costLine } from '../terminal/cost-text.ts';
import { moneyText } from '../terminal/money-text.ts';
import { readOptions } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import {
  listRecorded,
  readLog,
  readSent,
  readTransaction,
  recordTransfer,
} from '../terminal/record-transfer.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';
import { listSweeps } from '../../payments/store/refunds.ts';
import { readValuation } from '../terminal/worth.ts';
import { worthOn, worthText } from '../../audit/rules/bookkeeping/worth.ts';
import { type Valuation, valueDecimals } from '../../audit/rules/bookkeeping/rates.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { notDone, say } from '../../base/terminal/terminal.ts';
import { csvLine } from '../../base/values/csv-line.ts';
import { type CarriedPayment, sweepParts } from '../use-cases/books/sweep-payments.ts';
import { openDatabaseSource } from '../use-cases/books/source.ts';
import { decimalText, type Entry } from '../../base/values/entry.ts';

const messages: Readonly<Record<SweepRefusal, string>> = {
  ...chainMessages,
  no_sweep: 'that transaction transfers nothing from an address that receives payments',
  refund_due:
    'it is to a payer to whom at least as much is due as a refund; nothing was recorded: ' +
    'use `tollbook refunds record`, or --not-a-refund if it is not a refund',
  transfer_claimed: 'all its transfers are already recorded for another purpose',
};

export async function record(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['sweeps record'], args);
  const { sources, ...sent } = readSent(values, 'sweep');
  return recordTransfer(sources, messages, async ({ ledger, chains, config }) => {
    const order = { ...sent, isNoRefund: values['not-a-refund'] };
    const answer = await recordSweep(ledger, order, chains, config?.jobs?.acceptedTokens ?? []);
    if (answer.kind === 'refused') return answer;
    return [
      ...answer.recorded.map((sweep) => `Swept: ${moneyOf(sweep)}.`),
      ...answer.repeated.map((sweep) => `Recorded before: ${moneyOf(sweep)}.`),
      ...answer.skipped.map(({ sweep, stream }) => `No sweep: ${moneyOf(sweep)} is recorded in ${stream}.`),
      costLine(answer.cost),
    ];
  });
}

function moneyOf(sweep: Sweep): string {
  return `${moneyText(sweep)} from ${sweep.pay_to} to ${sweep.swept_to}`;
}

export function list(args: readonly string[]): Promise<ExitCode> {
  return listRecorded(
    args,
    listSweeps,
    'No sweep is recorded.',
    ({ data }, worth) =>
      `${moneyText(data, worth(data))} on ${data.network}, by ${data.operator}\n` +
      `  from ${data.pay_to} to ${data.swept_to}, transaction ${data.transaction}, log ${data.log_index}`,
  );
}

const header = ['quote_digest', 'payment_nonce', 'payer', 'transaction', 'block', 'amount', 'token'] as const;

export async function payments(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(moneyCommands['sweeps payments'], args);
  const { csv } = values;
  const [tx, log] = [readTransaction(values.tx, 'sweep'), readLog(values.log)];
  const isOf = (name: string): boolean =>
    log === undefined ? name.startsWith(`${tx}:`) : name === `${tx}:${log}`;
  const valuation = await readValuation(values);
  if (csv) process.stdout.write(csvLine([...header, ...(valuation ? ['value', 'value_currency'] : [])]));
  return withLedger(async ({ pool }) => {
    const sweeps: Entry[] = [];
    let [count, sum] = [0, 0n];
    for await (const part of sweepParts(await openDatabaseSource(pool), isOf)) {
      if (part.kind === 'sweep') sweeps.push(part.entry);
      else {
        count += part.atoms > 0n ? 1 : -1;
        sum += part.atoms;
        const fields = [...fieldsOf(part), ...worthFields(part, valuation, csv)];
        process.stdout.write(csv ? csvLine(fields) : `${fields.join('  ')}\n`);
      }
    }
    const [sweep, another] = sweeps;
    const move = sweep?.moves[0];
    if (!sweep || !move || another)
      return notDone(
        another
          ? 'the transaction has several sweeps: name one with --log'
          : 'no sweep of this transaction is recorded',
      );
    const { commodity, atoms } = move;
    const text = (amount: bigint): string => `${decimalText(amount, commodity.decimals)} ${commodity.symbol}`;
    if (!csv) say(`${count} payments of ${text(sum)}; the sweep moved ${text(atoms)}.`);
    return exitCodes.done;
  });
}

/** What it was worth on the day of its recording; empty without a rate. */
function worthFields(
  { entry, atoms }: CarriedPayment,
  valuation: Valuation | undefined,
  csv: boolean,
): string[] {
  const commodity = entry.moves[0]?.commodity;
  if (!valuation || !commodity) return [];
  const day = entry.recordedAt.slice(0, 10);
  if (!csv) return [`(${worthText(atoms, commodity, day, valuation)})`];
  const micros = worthOn(atoms, commodity, day, valuation);
  return [micros === undefined ? '' : decimalText(micros, valueDecimals), valuation.currency];
}

function fieldsOf({ entry, atoms }: CarriedPayment): string[] {
  const { payment, moves, quoteDigest = '', transaction = '', block = '' } = entry;
  const commodity = moves[0]?.commodity;
  const amount = decimalText(atoms, commodity?.decimals ?? 0);
  return [
    quoteDigest,
    payment?.nonce ?? '',
    payment?.payer ?? '',
    transaction,
    block,
    amount,
    commodity?.symbol ?? '',
  ];
}

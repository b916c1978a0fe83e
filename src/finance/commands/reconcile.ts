import { writeFile } from 'node:fs/promises';
import type pg from 'pg';
import { ReconcileError } from '../use-cases/reconcile/reconcile-error.ts';
import type { LedgerSource } from '../use-cases/reconcile/ledger-reading.ts';
import { ledgerInDatabase, ledgerInFile } from '../use-cases/reconcile/ledger-source.ts';
import type { Config } from '../../base/config/config.ts';
import { ConfigError } from '../../base/config/mistakes.ts';
import { CheckpointError, type NoteVerifier } from '../../base/values/log/checkpoint.ts';
import type { Period } from '../../base/values/period.ts';
import { hasCompared, type ReportJson, reportText } from '../rules/reconcile/report.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import { openBooks } from '../use-cases/books/books.ts';
import { openDatabaseSource, openFileSource } from '../use-cases/books/source.ts';
import type { BooksSource } from '../terminal/books-source.ts';
import { compareReport } from '../use-cases/periods/compare-period.ts';
import { findPeriods, readPeriods } from '../use-cases/periods/read-periods.ts';
import { storeReconciliation } from '../../audit/store/reconciliations.ts';
import { readConfig } from '../../audit/terminal/chains.ts';
import {
  givenVerifier,
  readCheckpoints,
  readVerifier,
  requireExport,
} from '../../audit/terminal/given-proof.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import {
  ArgumentError,
  readOptions,
  readPairs,
  readRpcUrls,
  requireWritable,
} from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { takePeriod } from '../terminal/period-choice.ts';
import { besideClose } from '../terminal/period-text.ts';
import { reconcileCsv } from '../terminal/reconcile-csv.ts';
import { exitCodeOf, runReconcile } from '../terminal/run-reconcile.ts';
import { reconcileLines } from '../terminal/reconcile-table.ts';
import { refuseUnsealed } from '../terminal/require-sealed.ts';
import { pinnedReport } from '../terminal/check-period.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';
import type { ValuesOf } from '../../base/terminal/command.ts';
import { bookCommands } from '../terminal/book-descriptions.ts';

export async function run(args: readonly string[]): Promise<ExitCode> {
  const { values } = readOptions(bookCommands.reconcile, args);
  try {
    const request = readRequest(values);
    if (values.csv !== undefined) await requireWritable('csv', values.csv);
    if (values.json !== undefined && values.json !== '-') await requireWritable('json', values.json);
    if (values.resume !== undefined) await requireWritable('resume', values.resume);
    if (values.pubkey !== undefined) await readVerifier(values.pubkey);
    const config = values.config === undefined ? undefined : await readConfig(values.config);
    const made = await makeReport(values, { ...request, config });
    if (made.kind === 'unsealed') return made.exitCode;
    const { report, isAsClosed, notStored } = made;
    if (notStored !== undefined)
      return notDone(
        `the report is complete, but was not stored: ${notStored}. --no-store makes one without storing it`,
      );
    return isAsClosed ? exitCodeOf(report) : exitCodes.finding;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const isArgument = error instanceof ArgumentError || error instanceof CheckpointError;
    const message = error instanceof Error ? error.message : String(error);
    return notDone(
      isArgument || error instanceof ReconcileError ? message : `nothing was stored: ${message}`,
    );
  }
}

type Values = ValuesOf<(typeof bookCommands)['reconcile']>;

interface Request {
  readonly period: Period;
  readonly size: number | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
  readonly pinned: ReadonlyMap<string, bigint>;
  readonly config: Config | undefined;
}

function readRequest(values: Values): Pick<Request, 'period' | 'size' | 'rpcUrls' | 'pinned'> {
  const { size, input, checkpoint } = values;
  if (size !== undefined && !/^[1-9]\d{0,14}$/.test(size))
    throw new ArgumentError('--size is a number of events, from 1');
  if (input === undefined && checkpoint.length > 0)
    throw new ArgumentError('--checkpoint goes with --input: the database has its own');
  const pinned = readPairs('block', values.block, 'N', /^(?:0|[1-9]\d{0,15})$/);
  return {
    period: takePeriod(values, Date.now()),
    size: size === undefined ? undefined : Number(size),
    rpcUrls: readRpcUrls(values.rpc),
    pinned: new Map([...pinned].map(([network, block]) => [network, BigInt(block)])),
  };
}

/** `--require-sealed`: nothing was read from the chains. */
interface Unsealed {
  readonly kind: 'unsealed';
  readonly exitCode: ExitCode;
}

interface Made {
  readonly kind: 'made';
  readonly report: ReportJson;
  /** False if the period is closed, and the close has another report. */
  readonly isAsClosed: boolean;
  /** Why the report was not stored. */
  readonly notStored?: string;
}

async function makeReport(values: Values, request: Request): Promise<Made | Unsealed> {
  const { input } = values;
  if (input !== undefined) {
    await requireExport(input);
    const checkpoints = (await Promise.all(values.checkpoint.map(readCheckpoints))).flat();
    const verifier = await givenVerifier(values.pubkey, request.config);
    const books = openFileSource(input, Date.now(), Infinity);
    const unsealed = await refuseUnsealedPeriod(
      values,
      request,
      { source: books, pool: undefined },
      verifier,
    );
    if (unsealed !== undefined) return { kind: 'unsealed', exitCode: unsealed };
    const report = await reconcileWith(
      values,
      request,
      ledgerInFile(input, checkpoints, verifier, request.size),
    );
    await writeReports(values, report);
    print(values, report);
    const closed = (await findPeriods(books)).find(request.period);
    return { kind: 'made', report, isAsClosed: compareWithClose(values, report, closed, undefined) };
  }
  return withLedger(async ({ pool }) => {
    const verifier = await givenVerifier(values.pubkey, request.config, pool);
    const books = values['require-sealed'] ? await openDatabaseSource(pool) : undefined;
    const unsealed =
      books && (await refuseUnsealedPeriod(values, request, { source: books, pool }, verifier));
    if (unsealed !== undefined) return { kind: 'unsealed', exitCode: unsealed };
    const source = await ledgerInDatabase(pool, verifier, request.size);
    const report = await reconcileWith(values, request, source);
    await writeReports(values, report);
    const stored = values['no-store'] ? undefined : await store(pool, report);
    print(values, report);
    if (stored?.kind === 'stored' && values.json !== '-') say(`Stored as reconciliation ${stored.id}.`);
    const closed = (await readPeriods(pool)).periods.find(request.period);
    const pinned = closed && (await pinnedReport(pool, closed));
    const isAsClosed = compareWithClose(values, report, closed, pinned);
    return {
      kind: 'made',
      report,
      isAsClosed,
      ...(stored?.kind === 'failed' && { notStored: stored.reason }),
    };
  });
}

/** `--require-sealed`: a checkpoint covers every event that was recorded before the end of the period, or the head of `--size`. */
async function refuseUnsealedPeriod(
  values: Values,
  { period, size = Infinity }: Request,
  ledger: BooksSource,
  verifier: NoteVerifier | undefined,
): Promise<ExitCode | undefined> {
  if (!values['require-sealed']) return undefined;
  if (!verifier)
    throw new ArgumentError('--require-sealed needs the public key: give --pubkey, or a --config with a log');
  const { events } = await openBooks(ledger.source, period);
  return refuseUnsealed(values, ledger, Math.min(events, size), verifier);
}

type Stored =
  | { readonly kind: 'stored'; readonly id: number }
  /** The report is printed all the same. */
  | { readonly kind: 'failed'; readonly reason: string };

async function store(pool: pg.Pool, report: ReportJson): Promise<Stored> {
  try {
    return { kind: 'stored', id: await storeReconciliation(pool, reportText(report)) };
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  }
}

async function reconcileWith(values: Values, request: Request, source: LedgerSource): Promise<ReportJson> {
  const report = await runReconcile({ ...request, twice: values.twice, resumeFile: values.resume }, source);
  if (!hasCompared(report))
    throw new ArgumentError(
      'nothing was compared, and nothing was stored: no chain has a block in the period, and the ledger has nothing there. Is the year right?',
    );
  return report;
}

async function writeReports({ json, csv }: Values, report: ReportJson): Promise<void> {
  if (csv !== undefined) await writeFile(csv, reconcileCsv(report));
  if (json !== undefined && json !== '-') await writeFile(json, reportText(report));
}

function print({ json }: Values, report: ReportJson): void {
  if (json === '-') say(reportText(report));
  else for (const line of reconcileLines(report)) say(line);
}

/** Says how the report compares with the close of its period. */
function compareWithClose(
  { json }: Values,
  report: ReportJson,
  closed: ClosedPeriod | undefined,
  pinned: ReportJson | undefined,
): boolean {
  if (!closed) return true;
  const comparison = compareReport(closed, report, pinned);
  const isSame = comparison.result === 'same';
  (isSame && json !== '-' ? say : fail)(besideClose(closed, comparison));
  return isSame;
}

import type pg from 'pg';
import type { LedgerSource as BooksSource } from '../use-cases/books/source.ts';
import type { Config } from '../../base/config/config.ts';
import type { ClosedPeriod } from '../rules/periods/periods.ts';
import type { ReportJson } from '../rules/reconcile/report.ts';
import { compareReport, comparePeriod, type Comparison } from '../use-cases/periods/compare-period.ts';
import type { LedgerSource } from '../use-cases/reconcile/ledger-reading.ts';
import { ledgerInDatabase, ledgerInFile } from '../use-cases/reconcile/ledger-source.ts';
import { findReportByHash } from '../../audit/store/reconciliations.ts';
import { runReconcile } from './run-reconcile.ts';
import { ArgumentError, readGivenJson, readRpcUrls } from '../../base/terminal/arguments.ts';
import type { NoteVerifier } from '../../base/values/log/checkpoint.ts';
import { readConfig } from '../../audit/terminal/chains.ts';
import { givenVerifier, readCheckpoints, readVerifier } from '../../audit/terminal/given-proof.ts';

/** The chains to compare a close with, and the ledger at the head that it names. */
interface ChainCheck {
  readonly rpcUrls: ReadonlyMap<string, string>;
  readonly config: Config | undefined;
  readonly source: LedgerSource;
}

/**
 * Compares a close with the ledger and, where there are chains, with a reconciliation at the head of the close.
 * @throws ExportError, BooksError or ReconcileError if a side cannot be read
 */
export async function checkClosed(
  closed: ClosedPeriod,
  source: BooksSource,
  chains: ChainCheck | undefined,
  pinned: ReportJson | undefined,
): Promise<Comparison[]> {
  const compared = await comparePeriod(source, closed);
  if (!chains)
    return [
      ...compared,
      {
        of: 'reconciliation',
        result: 'not_compared',
        words: 'no chain was asked: give --rpc and --pubkey, or --config',
      },
    ];
  const report = await runReconcile({ period: closed.period, ...chains }, chains.source);
  return [...compared, compareReport(closed, report, pinned)];
}

/** The report of a close, if the database still has it. */
export async function pinnedReport(pool: pg.Pool, { close }: ClosedPeriod): Promise<ReportJson | undefined> {
  const stored = await findReportByHash(pool, close.data.report_sha256);
  return stored && (JSON.parse(stored.report) as ReportJson);
}

interface ChainValues {
  readonly rpc: readonly string[];
  readonly pubkey?: string | undefined;
  readonly config?: string | undefined;
}

type GivenLedger =
  | { readonly pool: pg.Pool }
  | { readonly file: string; readonly checkpoints: readonly string[] };

/** What the options say of the chains. */
interface GivenChains extends Omit<ChainCheck, 'source'> {
  readonly verifier: NoteVerifier | undefined;
}

/**
 * The chains that the options name, before the ledger is opened; undefined if they name none.
 * @throws ArgumentError, CheckpointError or ConfigError if they cannot be read
 */
export async function readGivenChains({
  rpc,
  pubkey,
  config: file,
}: ChainValues): Promise<GivenChains | undefined> {
  if (file === undefined && rpc.length === 0) {
    if (pubkey === undefined) return undefined;
    throw new ArgumentError(
      '--pubkey goes with --rpc or --config: without a chain nothing is compared with it',
    );
  }
  return {
    rpcUrls: readRpcUrls(rpc),
    config: file === undefined ? undefined : await readConfig(file),
    verifier: pubkey === undefined ? undefined : await readVerifier(pubkey),
  };
}

/**
 * The chains that the options name, and the ledger at the sealed head of the close.
 * @throws ArgumentError, CheckpointError or ReconcileError if the options do not say enough
 */
export async function openChainCheck(
  given: GivenChains | undefined,
  { close }: ClosedPeriod,
  ledger: GivenLedger,
): Promise<ChainCheck | undefined> {
  if (!given) return undefined;
  const { rpcUrls, config } = given;
  const pool = 'pool' in ledger ? ledger.pool : undefined;
  const verifier = given.verifier ?? (await givenVerifier(undefined, config, pool));
  if (!verifier)
    throw new ArgumentError(
      'the head of the close is checked with the public key: give --pubkey, or a --config with a log',
    );
  const { size } = close.data.head;
  if ('pool' in ledger)
    return { rpcUrls, config, source: await ledgerInDatabase(ledger.pool, verifier, size) };
  const checkpoints = (await Promise.all(ledger.checkpoints.map(readCheckpoints))).flat();
  return { rpcUrls, config, source: ledgerInFile(ledger.file, checkpoints, verifier, size) };
}

/** Reads a report of `tollbook reconcile --json`. Throws an ArgumentError if the file is not one. */
export async function readReport(file: string): Promise<ReportJson> {
  const report = await readGivenJson('report', file);
  if (typeof report === 'object' && report !== null && 'tollbook_reconciliation' in report)
    return report as ReportJson;
  throw new ArgumentError(`${file} is not a report of \`tollbook reconcile --json\``);
}

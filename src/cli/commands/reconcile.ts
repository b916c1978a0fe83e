import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { reconcile } from '../../reconcile/reconcile.ts';
import { ReconcileError } from '../../reconcile/reconcile-error.ts';
import { ledgerInDatabase, ledgerInFile, type LedgerSource } from '../../reconcile/ledger-source.ts';
import type pg from 'pg';
import { signerOf } from '../../app/log.ts';
import { currentSigner } from '../../log/anchors.ts';
import type { Config } from '../../config/config.ts';
import { ConfigError } from '../../config/mistakes.ts';
import { CheckpointError, type NoteVerifier, verifierOf } from '../../domain/log/checkpoint.ts';
import { type Period, parsePeriod } from '../../domain/values/period.ts';
import { type ReportJson, reportText } from '../../domain/reconcile/report.ts';
import { storeReconciliation } from '../../store/reconciliations.ts';
import { openScanners, readConfig } from '../chains.ts';
import { readCheckpoints, readVerifier, requireExport } from '../given-proof.ts';
import { withLedger } from '../ledger.ts';
import { ArgumentError, readPairs, readRpcUrls } from '../arguments.ts';
import { startProgress } from '../progress.ts';
import { reconcileLines } from '../reconcile-table.ts';
import { fail, say } from '../terminal.ts';

/** Exit code 0 without a break, 1 with a break that is open, 3 where each break is explained, 2 if the chain or the ledger could not be read, 64 for wrong arguments. */
export async function run(args: readonly string[]): Promise<number> {
  const values = readValues(args);
  try {
    const request = readRequest(values);
    const config = values.config === undefined ? undefined : await readConfig(values.config);
    const report = await makeReport(values, { ...request, config });
    return exitCodeOf(report);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const isArgument = error instanceof ArgumentError || error instanceof CheckpointError;
    const message = error instanceof Error ? error.message : String(error);
    fail(isArgument || error instanceof ReconcileError ? message : `nothing was stored: ${message}`);
    return isArgument ? 64 : 2;
  }
}

function exitCodeOf({ result, breaks, breaks_explained: explained }: ReportJson): number {
  if (result !== 'breaks') return 0;
  return breaks === explained ? 3 : 1;
}

function readValues(args: readonly string[]) {
  return parseArgs({
    args: [...args],
    options: {
      from: { type: 'string' },
      to: { type: 'string' },
      config: { type: 'string' },
      rpc: { type: 'string', multiple: true, default: [] },
      input: { type: 'string' },
      checkpoint: { type: 'string', multiple: true, default: [] },
      pubkey: { type: 'string' },
      size: { type: 'string' },
      block: { type: 'string', multiple: true, default: [] },
      twice: { type: 'boolean', default: false },
      resume: { type: 'string' },
      json: { type: 'string' },
    },
  }).values;
}
type Values = ReturnType<typeof readValues>;

interface Request {
  readonly period: Period;
  readonly size: number | undefined;
  readonly rpcUrls: ReadonlyMap<string, string>;
  readonly pinned: ReadonlyMap<string, bigint>;
  readonly config: Config | undefined;
}

function readRequest(values: Values): Pick<Request, 'period' | 'size' | 'rpcUrls' | 'pinned'> {
  const reading = parsePeriod(values.from, values.to, Date.now());
  if (reading.kind === 'refusal') throw new ArgumentError(reading.refusal.message);
  const { size, input, checkpoint } = values;
  if (size !== undefined && !/^[1-9]\d{0,14}$/.test(size))
    throw new ArgumentError('--size is a number of events, from 1');
  if (input === undefined && checkpoint.length > 0)
    throw new ArgumentError('--checkpoint goes with --input: the database has its own');
  const pinned = readPairs('block', values.block, 'N', /^(?:0|[1-9]\d{0,15})$/);
  return {
    period: reading.period,
    size: size === undefined ? undefined : Number(size),
    rpcUrls: readRpcUrls(values.rpc),
    pinned: new Map([...pinned].map(([network, block]) => [network, BigInt(block)])),
  };
}

/** The given key; else that of the configuration under the log's present name, which is known to the database alone. */
async function givenVerifier(
  { pubkey }: Values,
  config: Config | undefined,
  pool?: pg.Pool,
): Promise<NoteVerifier | undefined> {
  if (pubkey !== undefined) return readVerifier(pubkey);
  if (!config?.log) return undefined;
  const first = signerOf(config.log);
  return verifierOf(pool ? await currentSigner(pool, first) : first);
}

async function makeReport(values: Values, request: Request): Promise<ReportJson> {
  const { input } = values;
  if (input !== undefined) {
    await requireExport(input);
    const checkpoints = (await Promise.all(values.checkpoint.map(readCheckpoints))).flat();
    const verifier = await givenVerifier(values, request.config);
    const report = await reconcileWith(
      values,
      request,
      ledgerInFile(input, checkpoints, verifier, request.size),
    );
    await writeJson(values, report);
    print(values, report);
    return report;
  }
  return withLedger(async ({ pool }) => {
    const verifier = await givenVerifier(values, request.config, pool);
    const source = await ledgerInDatabase(pool, verifier, request.size);
    const report = await reconcileWith(values, request, source);
    await writeJson(values, report);
    const id = await storeReconciliation(pool, reportText(report));
    print(values, report);
    if (values.json !== '-') say(`Stored as reconciliation ${id}.`);
    return report;
  });
}

async function reconcileWith(values: Values, request: Request, source: LedgerSource): Promise<ReportJson> {
  const chains = openScanners(request.config, request.rpcUrls);
  const progress = startProgress();
  try {
    return await reconcile({
      period: request.period,
      source,
      chains,
      accepted: request.config?.jobs?.acceptedTokens ?? [],
      pinned: request.pinned,
      twice: values.twice,
      resumeFile: values.resume,
      onProgress: progress.at,
    });
  } finally {
    progress.end();
    await Promise.all([...chains.values()].map((chain) => chain.close()));
  }
}

async function writeJson({ json }: Values, report: ReportJson): Promise<void> {
  if (json !== undefined && json !== '-') await writeFile(json, reportText(report));
}

function print({ json }: Values, report: ReportJson): void {
  if (json === '-') say(reportText(report));
  else for (const line of reconcileLines(report)) say(line);
}

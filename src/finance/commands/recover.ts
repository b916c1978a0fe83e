import type pg from 'pg';
import { compareConfiguredAnchors, signerOf } from '../../audit/use-cases/log/configured-log.ts';
import type { Config } from '../../base/config/config.ts';
import { latestValidBefore } from '../../payments/rules/payment-window.ts';
import { parseInstant } from '../../base/values/period.ts';
import { type AnchorComparison, differenceText, placeOf } from '../../audit/use-cases/log/anchors.ts';
import type { ChainScanner } from '../../payments/peers/chain/transfer-scan.ts';
import { findLoss, type Loss } from '../use-cases/recovery/find-loss.ts';
import {
  beginRecovery,
  recordSearch,
  type SearchOptions,
  type SearchResult,
  searchNetworks,
} from '../use-cases/recovery/recover.ts';
import { doesGatewayRun } from '../use-cases/recovery/running-gateways.ts';
import type { LostPayment } from '../use-cases/recovery/search-network.ts';
import { readExportEnd } from '../../ledger/store/export.ts';
import { readLogGeneration } from '../../audit/store/log.ts';
import { readHalt, readRecovery, type Recovery } from '../../ledger/store/recovery.ts';
import { ArgumentError, readOperator, readOptions, readRpcUrls } from '../../base/terminal/arguments.ts';
import { type ExitCode, exitCodes } from '../../base/terminal/exit-codes.ts';
import { openScanners, readConfig } from '../../audit/terminal/chains.ts';
import { publishFirstCheckpoint } from '../../audit/terminal/first-checkpoint.ts';
import { withLedger } from '../../ledger/terminal/ledger.ts';
import { moneyText } from '../terminal/money-text.ts';
import { startProgress } from '../../base/terminal/progress.ts';
import { fail, notDone, say } from '../../base/terminal/terminal.ts';
import { moneyCommands } from '../terminal/money-descriptions.ts';

const nothingWrong = 'Nothing is wrong, as far as the anchors and the database tell';

interface Request {
  readonly config: Config;
  readonly operator: string;
  readonly rpcUrls: ReadonlyMap<string, string>;
  /** Unix seconds. */
  readonly sinceSecs: number | undefined;
  readonly isDryRun: boolean;
  readonly isForced: boolean;
}

type Ledger = Parameters<Parameters<typeof withLedger>[0]>[0];

export async function run(args: readonly string[]): Promise<ExitCode> {
  const request = await readRequest(args);
  const chains = openScanners(request.config, request.rpcUrls);
  try {
    return await withLedger((ledger) => recover(ledger, request, chains));
  } finally {
    await Promise.all([...chains.values()].map((chain) => chain.close()));
  }
}

async function readRequest(args: readonly string[]): Promise<Request> {
  const { values } = readOptions(moneyCommands.recover, args);
  if (values.config === undefined)
    throw new ArgumentError("--config is missing: name the gateway's configuration");
  const sinceMs = values.since === undefined ? undefined : parseInstant(values.since);
  if (values.since !== undefined && sinceMs === undefined)
    throw new ArgumentError('--since is a time, such as 2026-11-20T06:30:00Z');
  return {
    // no default: a decision about money names the operator who made it
    operator: readOperator(values.by ?? ''),
    rpcUrls: readRpcUrls(values.rpc),
    sinceSecs: sinceMs === undefined ? undefined : Math.floor(sinceMs / 1_000),
    isDryRun: values['dry-run'],
    isForced: values.force,
    config: await readConfig(values.config),
  };
}

async function recover(
  ledger: Ledger,
  request: Request,
  chains: ReadonlyMap<string, ChainScanner>,
): Promise<ExitCode> {
  const { pool } = ledger;
  const { config, operator, isDryRun } = request;
  const signer = config.log && signerOf(config.log);
  const { generation: after } = await readLogGeneration(pool);
  const loss = await examine(pool, request);
  const earlier = await readRecovery(pool);
  if (!loss) {
    if (earlier && !request.isForced) return search(ledger, request, earlier, chains);
    return notDone(`${nothingWrong}: nothing was changed. --force recovers nevertheless.`);
  }
  const sinceSecs = request.sinceSecs ?? loss.sinceSecs;
  if (sinceSecs === undefined)
    throw new ArgumentError(
      'nothing tells when the lost events began: name the time of the backup, or an earlier one, by --since TIME',
    );
  describe(loss, sinceSecs);
  if (isDryRun) return trial(ledger, request, sinceSecs, chains);
  // one that has not noticed the loss yet would halt the recovered ledger again
  if (await doesGatewayRun(pool))
    return notDone(
      'A gateway runs on this database: nothing was changed. Stop every gateway, then run the command again.',
    );
  const recovery = await beginRecovery(ledger, { loss, sinceSecs, operator, signer, after });
  if (!recovery)
    return notDone(
      'another command recovers this ledger at this moment: run the command again when that has ended',
    );
  say(`Recovered: the ledger continues after event ${loss.keptSeq}.`);
  if (signer) await publishFirstCheckpoint(pool, config, signer);
  return search(ledger, request, recovery, chains);
}

/** Reads the anchors and the database, and prints their loss. Undefined if the ledger is whole. */
async function examine(pool: pg.Pool, { config, isForced }: Request): Promise<Loss | undefined> {
  const compared = await compareConfiguredAnchors(pool, config.log);
  for (const one of compared) say(comparisonText(one));
  const halt = await readHalt(pool);
  if (halt) say(`A gateway has stopped all others: ${halt.reason}.`);
  const loss = await findLoss(pool, compared, halt);
  if (loss || !isForced) return loss;
  const { last: keptSeq } = await readExportEnd(pool);
  const unknown = { anchored: undefined, lostFrom: undefined, lostTo: undefined, sinceSecs: undefined };
  return { ...unknown, reason: 'forced', keptSeq };
}

function comparisonText(compared: AnchorComparison): string {
  const place = placeOf(compared.anchor);
  switch (compared.kind) {
    case 'none':
      return `${place} has no checkpoint, or none that can be read.`;
    case 'unreadable':
      return `${place} could not be read: ${compared.cause}.`;
    case 'same':
      return `${place} has a checkpoint of ${compared.head.size} events, which this database has.`;
    case 'ahead':
    case 'other_history':
      return `${differenceText(compared)}.`;
  }
}

function describe({ keptSeq, lostFrom, lostTo }: Loss, sinceSecs: number): void {
  say(`Kept: the events 1 to ${keptSeq}.`);
  say(
    lostTo === undefined
      ? 'Lost: an unknown number of events.'
      : `Lost: events ${lostFrom === undefined ? 'of unknown number' : `${lostFrom}`} to ${lostTo}, and any that were never anchored.`,
  );
  say(`Payments that landed since ${timeText(sinceSecs)} are searched, and those of the day before.`);
}

function optionsOf(
  { config }: Request,
  chains: ReadonlyMap<string, ChainScanner>,
  sinceSecs: number,
  recoveredAtMs: number,
): Omit<SearchOptions, 'onProgress'> {
  const { acceptedTokens = [], maxTimeoutSecs = 0 } = config.jobs ?? {};
  // no authorization of the lost events is valid any longer
  const untilSecs = latestValidBefore(Math.ceil(recoveredAtMs / 1_000), maxTimeoutSecs);
  return { chains, accepted: acceptedTokens, sinceSecs, untilSecs };
}

/** Prints the payments that would be recorded. */
async function trial(
  ledger: Ledger,
  request: Request,
  sinceSecs: number,
  chains: ReadonlyMap<string, ChainScanner>,
): Promise<ExitCode> {
  const progress = startProgress();
  const options = { ...optionsOf(request, chains, sinceSecs, Date.now()), onProgress: progress.at };
  for await (const found of searchNetworks(ledger, options, new Set())) {
    progress.end();
    if (found.kind === 'failed') fail(found.words);
    else for (const lost of found.search.lost) say(`Would be recorded: ${lostText(lost)}`);
  }
  say('Nothing was changed: this was a dry run.');
  return exitCodes.done;
}

/** Searches every network that was not searched completely before. */
async function search(
  ledger: Ledger,
  request: Request,
  recovery: Recovery,
  chains: ReadonlyMap<string, ChainScanner>,
): Promise<ExitCode> {
  const progress = startProgress();
  const { data, at, searched } = recovery;
  const sinceSecs = Math.min(data.since, request.sinceSecs ?? data.since);
  const own = optionsOf(request, chains, sinceSecs, Date.parse(at));
  const options = { ...own, onProgress: progress.at };
  let [networks, count] = [0, 0];
  let isFinished = true;
  // an earlier time than the recorded one searches everything again
  const skip = sinceSecs < data.since ? new Set<string>() : searched;
  for await (const found of searchNetworks(ledger, options, skip)) {
    progress.end();
    const { recorded, isComplete } = await finish(ledger, recovery, found, {
      untilSecs: own.untilSecs,
      isExclusive: request.config.jobs?.payToExclusive ?? true,
    });
    networks += 1;
    count += recorded;
    isFinished &&= isComplete;
  }
  if (networks === 0) return notDone(`${nothingWrong}: nothing was changed. --force recovers nevertheless.`);
  if (count > 0) say(`${count} payments were found and recorded: see \`tollbook refunds due\`.`);
  if (!isFinished) return notDone('The recovery is not finished: run the same command again.');
  say('The recovery is finished: every network was searched. Start the gateways.');
  return exitCodes.done;
}

async function finish(
  ledger: Ledger,
  recovery: Recovery,
  found: SearchResult,
  { untilSecs, isExclusive }: { readonly untilSecs: number; readonly isExclusive: boolean },
): Promise<{ readonly recorded: number; readonly isComplete: boolean }> {
  const { network } = found;
  if (found.kind === 'failed') {
    fail(`${network} was not searched: ${found.words}`);
    return { recorded: 0, isComplete: false };
  }
  const { toBlock, isComplete, leaving, lost: unexplained } = found.search;
  // of a payee that another ledger has as well, the chain does not say which of them has sold
  const lost = isExclusive ? unexplained : [];
  const { recorded } = await recordSearch(ledger, recovery, network, { ...found.search, lost });
  if (!isExclusive)
    for (const one of unexplained)
      say(`Not recorded, as pay_to_exclusive is false, until its payer presents it: ${lostText(one)}`);
  for (const one of recorded) say(`Refund due: ${lostText(one)}`);
  for (const { transaction, from, to, amount, asset } of leaving)
    say(
      `No event: ${amount} atoms of ${asset} left ${from} for ${to} in ${transaction}: record it with ` +
        '`tollbook refunds record` or `tollbook sweeps record`',
    );
  if (!isComplete)
    fail(
      `${network} was searched up to block ${toBlock}, the last final one. Payments may land until ` +
        `${timeText(untilSecs)}: run the command again when a later block is final`,
    );
  return { recorded: recorded.length, isComplete };
}

function lostText({ network, transfer, payer, nonce, ...token }: LostPayment): string {
  const money = moneyText({ ...token, amount: transfer.amount });
  return `${money} on ${network} by ${payer} in ${transfer.transaction}, payment ${nonce}`;
}

function timeText(secs: number): string {
  return new Date(secs * 1_000).toISOString();
}

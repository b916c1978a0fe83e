import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type NoteVerifier, verifierOf } from '../../src/base/values/log/checkpoint.ts';
import { signerIn } from '../../src/base/values/log/log-generation.ts';
import type { BridgeLineJson } from '../../src/finance/rules/reconcile/bridge-json.ts';
import { type ReportJson, reportText } from '../../src/finance/rules/reconcile/report.ts';
import type { Period } from '../../src/base/values/period.ts';
import { createScanner } from '../../src/payments/peers/chain/transfer-scan.ts';
import { checkRows } from '../../src/audit/use-cases/verify/rows/check-rows.ts';
import { projectToHead } from '../../src/audit/use-cases/projections/project.ts';
import type { LedgerSource } from '../../src/finance/use-cases/reconcile/ledger-reading.ts';
import { ledgerInDatabase, ledgerInFile } from '../../src/finance/use-cases/reconcile/ledger-source.ts';
import { reconcile } from '../../src/finance/use-cases/reconcile/reconcile.ts';
import { listRefundsDue } from '../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { listAccounts } from '../../src/accounts/store/credit.ts';
import { exportLines } from '../../src/finance/use-cases/books/export-leaves.ts';
import { readHead, readLogGeneration } from '../../src/audit/store/log.ts';
import { verifyDatabase } from '../../src/audit/use-cases/verify/verify-database.ts';
import { complaintsOf, isAbsent, type JournalTool } from '../support/journal-tools.ts';
import { exceptionsIn } from '../support/report-items.ts';
import { chainId, network, payTo } from './chain.ts';
import { chart, coin, coinDecimals, commodityOf, credit, creditDecimals } from './chart.ts';
import { requireSame, requireSameAmounts } from './compare.ts';
import { toolBalances, writeJournal } from './journals.ts';
import { type YearLedger, yearSigner } from './ledger.ts';
import type { World } from './world.ts';

const mostDue = 1_000_000;
const bothTools = ['hledger', 'beancount'] as const satisfies readonly JournalTool[];

/**
 * Checks a period that is over: the ledger is verified, the reconciliation and the journals are made, and all of it is compared with the
 * model and with the chain, to the atom. Returns the reconciliation.
 * @throws Error with the first difference
 */
export async function checkPeriod(world: World, name: string, period: Period): Promise<ReportJson> {
  const { ledger } = world;
  const verifier = await ledger.seal();
  await requireVerified(ledger, verifier, name);
  const report = await reconcilePeriod(world, period, verifier);
  await requireReport(world, name, period, report);
  await requireSameFromExport(world, name, period);
  await requireJournals(world, name, period);
  await requireOwed(world, name);
  return report;
}

async function requireVerified(ledger: YearLedger, verifier: NoteVerifier, name: string): Promise<void> {
  await projectToHead(ledger);
  const verdict = await verifyDatabase(ledger.pool, [], verifier);
  requireSame(`${name}: the first wrong event`, verdict.fault, undefined);
  requireSame(`${name}: the rows that are wrong`, await checkRows(ledger.pool), []);
  if (!verdict.isSound) throw new Error(`${name}: the ledger is not sound`);
}

/** The reconciliation of a period, as the command makes it. */
export async function reconcilePeriod(
  { ledger, chain }: Pick<World, 'ledger' | 'chain'>,
  period: Period,
  verifier: NoteVerifier | undefined,
): Promise<ReportJson> {
  return reconcileFrom(await ledgerInDatabase(ledger.pool, verifier, undefined), chain, period);
}

/** A year of more payments would be folded as a whole for too long. */
const mostFolded = 1_000;

/**
 * A reconciliation in the database reads only what matters to its period. It must be that of an export, which folds every event.
 * @throws Error with the first difference
 */
export async function requireSameFromExport(world: World, name: string, period: Period): Promise<void> {
  if (world.options.payments > mostFolded) return;
  const { ledger, chain } = world;
  const verifier = await ledger.seal();
  const head = await readHead(ledger.pool, verifier.name);
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-year-'));
  try {
    const file = path.join(dir, 'export.jsonl');
    await pipeline(Readable.from(exportLines(ledger.pool, 1)), createWriteStream(file));
    const checkpoint = { source: 'the newest head', note: head?.note ?? '' };
    const folded = await reconcileFrom(ledgerInFile(file, [checkpoint], verifier, undefined), chain, period);
    const report = await reconcilePeriod(world, period, verifier);
    requireSame(
      `${name}: the report, line by line, and that of an export`,
      linesOfReport(report),
      linesOfReport(folded),
    );
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/**
 * The report of a closed period is the same bytes again from its head, whatever was recorded since.
 * @throws Error with the first difference
 */
export async function requireSameAgain(
  { ledger, chain }: World,
  name: string,
  period: Period,
  closed: ReportJson,
): Promise<void> {
  const [origin = ''] = closed.ledger.checkpoint?.split('\n') ?? [];
  const { generation } = await readLogGeneration(ledger.pool);
  const verifiers = Array.from({ length: generation }, (_, n) => verifierOf(signerIn(yearSigner, n + 1)));
  const verifier = verifiers.find((one) => one.name === origin);
  const source = await ledgerInDatabase(ledger.pool, verifier, closed.ledger.size);
  requireSame(
    `${name}: the report of its close`,
    linesOfReport(await reconcileFrom(source, chain, period)),
    linesOfReport(closed),
  );
}

function linesOfReport(report: ReportJson): string[] {
  return JSON.stringify(JSON.parse(reportText(report)), null, 1).split('\n');
}

async function reconcileFrom(
  source: LedgerSource,
  chain: World['chain'],
  period: Period,
): Promise<ReportJson> {
  const scanner = createScanner({ network, chainId, rpcUrl: chain.rpcUrl, timeoutMs: 60_000 });
  try {
    return await reconcile({
      period,
      source,
      chains: new Map([[network as string, scanner]]),
      accepted: [],
      pinned: new Map(),
      twice: false,
      resumeFile: undefined,
      onProgress: () => {},
    });
  } finally {
    await scanner.close();
  }
}

async function requireReport(
  { model, chain }: World,
  name: string,
  { fromMs, toMs }: Period,
  report: ReportJson,
): Promise<void> {
  requireSame(`${name}: the exceptions of the report`, exceptionsIn(report), model.exceptions(fromMs, toMs));
  requireSame(`${name}: matched payments`, report.classes.matched?.count ?? 0, model.matched(fromMs, toMs));
  requireSame(`${name}: breaks`, report.breaks, 0);
  requireSame(`${name}: the fault of the ledger`, report.ledger.fault, null);
  const [read] = report.networks;
  requireSame(`${name}: the proof that the logs are complete`, read?.completeness, 'balance');
  requireSame(`${name}: accounts in the report`, report.accounts.length, chain.tokens.length);
  for (const token of chain.tokens) {
    const account = report.accounts.find(({ asset }) => asset === token.address);
    const moved = account?.movements.reduce((sum, one) => sum + BigInt(one.in) - BigInt(one.out), 0n);
    const booked = (holding: string) => model.balanceOf(holding, commodityOf(token), toMs);
    const [books, unconfirmed] = [booked(chart.chain(token)), booked(chart.unconfirmed(token))];
    const late = model.late(token, toMs);
    const lateAtoms = Object.values(late)
      .flat()
      .map((line) => BigInt(line.split(' ')[1] ?? 0));
    requireSameAmounts(`${name}: ${token.symbol} at the payee`, {
      'by the model': model.held(token, toMs),
      'on the chain': await chain.balance(token, payTo, BigInt(read?.to_block ?? 0)),
      'closing of the report': BigInt(account?.closing.atoms ?? -1),
      'opening and movements': BigInt(account?.opening.atoms ?? -1) + (moved ?? 0n),
      'by the ledger': BigInt(account?.ledger.closing ?? -1),
      'by the books, with what is late': lateAtoms.reduce((sum, one) => sum + one, books + unconfirmed),
    });
    requireSameAmounts(`${name}: ${token.symbol} at the payee, opening`, {
      'by the model': model.held(token, fromMs),
      'of the report': BigInt(account?.opening.atoms ?? -1),
    });
    const bridge = account?.bridge;
    const lines = (bridge?.lines ?? []).filter(({ count }) => count > 0);
    requireSame(
      `${name}: the bridge of ${token.symbol}`,
      [bridge?.books, bridge?.unconfirmed, bridge?.opening, bridge?.not_explained].concat(
        lines.flatMap(linesOf).toSorted(),
      ),
      [String(books), String(unconfirmed), '0', '0'].concat(
        Object.entries(late)
          .flatMap(([reason, items]) => items.map((item) => `${reason} ${item}`))
          .toSorted(),
      ),
    );
  }
}

function linesOf({ reason, items }: BridgeLineJson): string[] {
  return items.map(
    ({ quote_digest, transaction, atoms }) => `${reason} ${quote_digest ?? transaction} ${atoms}`,
  );
}

async function requireJournals(world: World, name: string, period: Period): Promise<void> {
  const { ledger, model, chain } = world;
  const decimalsOf = (commodity: string): number =>
    chain.tokens.find((token) => commodityOf(token) === commodity)?.decimals ??
    { [credit]: creditDecimals, [coin]: coinDecimals }[commodity] ??
    Number.NaN;
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-year-'));
  try {
    for (const tool of bothTools) {
      if (isAbsent(tool)) continue;
      const file = path.join(dir, `${name}.${tool}`);
      await writeJournal(ledger, period, tool, file);
      requireSame(`${name}: what ${tool} says of the journal`, await complaintsOf(tool, file), '');
      const found = await toolBalances(tool, file, decimalsOf);
      const expected = model.balances(period.fromMs, period.toMs);
      // the other side of what is brought forward is not a fact of the year
      for (const balances of [found, expected])
        for (const key of balances.keys()) if (key.startsWith('Equity:Opening ')) balances.delete(key);
      requireSame(`${name}: the balances by ${tool}`, sorted(found), sorted(expected));
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function sorted(balances: ReadonlyMap<string, bigint>): string[] {
  return [...balances].map(([account, atoms]) => `${account}: ${atoms}`).toSorted();
}

/** What is owed at this moment: refunds and prepaid credit. */
async function requireOwed({ ledger, model, credit: balances }: World, name: string): Promise<void> {
  const due = [...model.payments.values()]
    .filter(({ dueAtoms }) => dueAtoms > 0n)
    .map((one) => `${one.name} ${one.dueAtoms}`);
  const { rows, contradicted } = await listRefundsDue(ledger.pool, 0, mostDue);
  const listed = rows.map(({ quote_digest: digest, amount }) => `${digest} ${amount}`);
  requireSame(`${name}: refunds due`, listed.toSorted(), due.toSorted());
  requireSame(`${name}: refunds due that the events contradict`, contradicted, []);
  const prepaid = [chart.grantedCredit, chart.boughtCredit].reduce(
    (sum, account) => sum - model.balanceOf(account, credit, Infinity),
    0n,
  );
  requireSameAmounts(`${name}: prepaid credit`, {
    'by the books of the model': prepaid,
    'by its accounts': [...balances.values()].reduce((sum, one) => sum + one, 0n),
    'in the ledger': BigInt(
      (await listAccounts(ledger.db)).reduce((sum, one) => sum + one.balanceMicros + one.heldMicros, 0),
    ),
  });
}

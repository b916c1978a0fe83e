import { privateKeyToAddress } from 'viem/accounts';
import { lowerCase } from '../../src/devnet/accounts.ts';
import { createChain } from '../../src/payments/peers/chain/chain.ts';
import { createRandom } from '../chaos/random.ts';
import { hex32Of } from '../support/synthetic-ledger.ts';
import { chainId, network, payTo, startYearChain, vault } from './chain.ts';
import type { ReportJson } from '../../src/finance/rules/reconcile/report.ts';
import { checkPeriod, requireSameAgain, requireSameFromExport } from './close.ts';
import { requireSame } from './compare.ts';
import { chat, expire, grant } from './credit.ts';
import { createYearLedger } from './ledger.ts';
import { reorg, restore } from './misfortunes.ts';
import { YearModel } from './model.ts';
import { type UnexplainedTransferEnd, ownMoney, strayMoney, sweep } from './operators.ts';
import { closeByTwo, differencesSince } from './periods.ts';
import { deliverAll, makeStep } from './step.ts';
import { later, setClock, type World, type YearOptions } from './world.ts';

const firstYear = 2025;
const payersByMonth = 40;
/** The days of a month on which a block of payments is made; the last one ends with the month. */
const days = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28] as const;
/** A month is closed on the first day after this one. */
const closeDay = 8;
const noonMs = 12 * 3_600_000;

export interface YearSetup {
  readonly serverUrl: string;
  readonly say: (line: string) => void;
}

/** Opens the world in which a year is made: a ledger, a chain, customers with money. */
export async function openWorld(options: YearOptions, { serverUrl }: YearSetup): Promise<World> {
  const payers = Array.from({ length: payersByMonth }, (_, n) => {
    const key = hex32Of(`${options.seed} payer ${n}`);
    return { key, address: lowerCase(privateKeyToAddress(key)) };
  });
  const beginsAt = new Date(Date.UTC(firstYear, 0, 1) - 86_400_000);
  const addresses = payers.map(({ address }) => address);
  const [chain, ledger] = await Promise.all([
    startYearChain(beginsAt, addresses),
    createYearLedger(serverUrl),
  ]);
  const reader = createChain({ chainId, rpcUrl: chain.rpcUrl, timeoutMs: 30_000 });
  const world: World = {
    options,
    random: createRandom(options.seed),
    chain,
    chains: new Map([[network, reader]]),
    model: new YearModel(),
    payers,
    ledger,
    nowMs: 0,
    blockMs: 0,
    step: 0,
    tasks: [],
    onMined: [],
    open: new Map(),
    reported: [],
    credit: new Map(),
    granted: new Map(),
    counts: new Map(),
  };
  await setClock(world, Date.UTC(firstYear, 0, 1));
  return world;
}

export async function closeWorld({ chain, chains, ledger }: World): Promise<void> {
  for (const reader of chains.values()) await reader.close();
  await ledger.drop();
  await chain.stop();
}

/** Makes the year, and closes each month once all of it is final and recorded. */
export async function makeYear(world: World, { say }: YearSetup): Promise<void> {
  const { options } = world;
  const reports: ReportJson[] = [];
  const shares = sharesOf(options.payments, options.months * (days.length + 1));
  let next = 0;
  const take = (): number[] => Array.from({ length: shares.shift() ?? 0 }, () => next++);
  for (let month = 0; month <= options.months; month++) {
    const isAfter = month === options.months;
    if (!isAfter) await beginMonth(world, month);
    for (const day of days) {
      const atMs = Date.UTC(firstYear, month, day) + noonMs;
      if (day === closeDay && month > 0) reports.push(await close(world, month - 1, month, say));
      if (isAfter && day === closeDay) break;
      const numbers = isAfter ? [] : take();
      if (month === Math.floor(options.months / 3) && day === 12) await reorg(world, atMs, numbers);
      else if (month === Math.floor(options.months / 2) && day === 14) await restore(world, atMs, numbers);
      else {
        await makeStep(world, { atMs, sales: numbers });
        await deliverAll(world);
      }
      if (!isAfter) await chat(world, Math.ceil(numbers.length / 20));
    }
    if (isAfter) break;
    // the settlements of the month's last block are recorded in the next month
    const endMs = Date.UTC(firstYear, month + 1, 1);
    await makeStep(world, { atMs: endMs - 40_000, recordedMs: endMs + 10_000, sales: take() });
    await deliverAll(world);
  }
  await close(world, 0, options.months, say);
  await requireUnchanged(world, reports);
}

const ends: readonly UnexplainedTransferEnd[] = ['income', 'returned', 'stays', 'returned_by_vault'];

/** What operators do in a month beside refunds. */
async function beginMonth(world: World, month: number): Promise<void> {
  const { chain } = world;
  await setClock(world, Date.UTC(firstYear, month, 1) + 3_600_000);
  const team = await grant(world, `team-${month}`, 5_000_000n);
  if (month > 0) later(world, 9, () => expire(world, team));
  for (const [i, token] of chain.tokens.entries()) {
    later(world, 5 + i, () => sweep(world, token));
    // sent in this month, recorded in the next
    later(world, days.length - 1, () => sweep(world, token));
    later(world, 3 + i, () =>
      strayMoney(world, token, ends[(month + i) % ends.length] ?? 'stays', 4 + 9 * i),
    );
  }
  const [first, second] = chain.tokens;
  if (first) later(world, 4, () => ownMoney(world, first, vault));
  if (second) later(world, 6, () => ownMoney(world, second, payTo));
}

/** Parts that differ by at most one. */
function sharesOf(all: number, parts: number): number[] {
  return Array.from(
    { length: parts },
    (_, n) => Math.floor(((n + 1) * all) / parts) - Math.floor((n * all) / parts),
  );
}

/** Closes the months from one to another. Returns their reconciliation. */
async function close(world: World, from: number, to: number, say: YearSetup['say']): Promise<ReportJson> {
  const period = { fromMs: Date.UTC(firstYear, from, 1), toMs: Date.UTC(firstYear, to, 1) };
  const name = to - from === 1 ? new Date(period.fromMs).toISOString().slice(0, 7) : 'the year';
  const report = await checkPeriod(world, name, period);
  // the year is what its months are
  if (to - from === 1) await closeByTwo(world.ledger, period, report);
  const classes = Object.entries(report.classes).map(([one, { count }]) => `${one} ${count}`);
  say(`${name} is closed: ${report.ledger.size} events, ${classes.join(', ')}`);
  return report;
}

/** Every month is still as it was closed, and what was recorded since is read for it as an export has it. */
async function requireUnchanged(world: World, reports: readonly ReportJson[]): Promise<void> {
  for (const [month, report] of reports.entries()) {
    const period = { fromMs: Date.UTC(firstYear, month, 1), toMs: Date.UTC(firstYear, month + 1, 1) };
    const name = `month ${month + 1}, at the end`;
    const changed = await differencesSince(world.ledger, period);
    requireSame(`${name}: what changed since it was closed`, changed, []);
    await requireSameAgain(world, name, period, report);
    await requireSameFromExport(world, name, period);
  }
}

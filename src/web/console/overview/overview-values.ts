import { formatUnits } from 'viem/utils';
import { withThousands } from '../../pages/elements.ts';
import { readCounters } from '../../../ledger/store/counters.ts';
import { type Backlog, readHolds, readOpenSettlements } from '../../../ledger/store/backlogs.ts';
import {
  type Latency,
  readLatency,
  readTokenDays,
  type TokenDay,
} from '../../../ledger/store/earnings-and-latency.ts';
import type { ConsoleSite } from '../visit.ts';
import { durationText } from '../words.ts';

const shownDays = 7;
const measuredPayments = 500;

/** The values that change while the page is open, as displayed, by the name of their place on the page. */
export type Figures = ReadonlyMap<string, string>;

export interface LiveFigures {
  readonly figures: Figures;
  /** The newest day first. */
  readonly tokenDays: readonly TokenDay[];
}

/** One statement after another: a watcher of many costs one connection for moments. */
export async function readFigures({ jobs, chat, ledger }: ConsoleSite): Promise<LiveFigures> {
  const { pool, db } = ledger;
  const figures = new Map<string, string>();
  let tokenDays: readonly TokenDay[] = [];
  if (jobs) {
    const { counters } = await readCounters(db);
    const settling = await readOpenSettlements(pool);
    const latency = await readLatency(pool, measuredPayments);
    tokenDays = await readTokenDays(pool, firstDay());
    figures.set('paid', withThousands(counters.settled));
    figures.set('refused', withThousands(counters.denied));
    figures.set('settling', backlogText(settling));
    figures.set('delivered', withThousands(counters.completed));
    addLatency(figures, latency);
    for (const day of tokenDays) addDay(figures, day);
  }
  if (chat) figures.set('completions', backlogText(await readHolds(pool)));
  figures.set('at', `${new Date().toISOString().slice(11, 19)} UTC`);
  return { figures, tokenDays };
}

function firstDay(): Date {
  return new Date(Date.now() - (shownDays - 1) * 86_400_000);
}

function backlogText({ count, oldestMs }: Backlog): string {
  return count === 0 ? '0' : `${withThousands(count)}, the oldest ${durationText(oldestMs)}`;
}

function addLatency(figures: Map<string, string>, { settled, delivered }: Latency): void {
  for (const [name, { p50, p95 }] of [
    ['settled', settled],
    ['delivered', delivered],
  ] as const) {
    figures.set(`${name}_ms`, p50 === null ? '–' : durationText(p50));
    figures.set(`${name}_p95_ms`, p95 === null ? '–' : durationText(p95));
  }
}

export const dayFigures = ['amount', 'payments', 'completed', 'deadLettered', 'refunded'] as const;

/** The name of a figure of a day's row. */
export function dayName({ day, network, asset }: TokenDay, figure: (typeof dayFigures)[number]): string {
  return `${day} ${network} ${asset} ${figure}`;
}

function addDay(figures: Map<string, string>, row: TokenDay): void {
  for (const figure of dayFigures)
    figures.set(dayName(row, figure), figure === 'amount' ? tokenText(row) : withThousands(row[figure]));
}

function tokenText({ amount, decimals, symbol }: TokenDay): string {
  const [whole = '0', rest] = formatUnits(BigInt(amount), decimals).split('.', 2);
  return `${withThousands(BigInt(whole))}${rest === undefined ? '' : `.${rest}`} ${symbol}`;
}

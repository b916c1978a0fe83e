import type { Html } from '../../../base/values/html.ts';
import { withThousands } from '../../pages/elements.ts';
import { readCounters } from '../../../ledger/store/counters.ts';
import { type Backlog, readHolds, readOpenSettlements } from '../../../ledger/store/backlogs.ts';
import { type Latency, readLatency, readTokenDays } from '../../../ledger/store/earnings-and-latency.ts';
import { countOutbox, type OutboxCount, type OutboxPlace } from '../../../calls/store/outbox.ts';
import type { ConsoleSite } from '../visit.ts';
import { durationText } from '../words.ts';
import { chartsOf } from './charts.ts';

const shownDays = 14;
const measuredPayments = 500;
const dayMs = 86_400_000;

/** The values that change while the page is open, as displayed, by the name of their place on the page. */
export type Figures = ReadonlyMap<string, string>;

export interface LiveFigures {
  readonly figures: Figures;
  /** Undefined where no jobs are sold. */
  readonly charts: Html | undefined;
}

/** One statement after another: a watcher of many costs one connection for moments. */
export async function readFigures({ jobs, chat, ledger }: ConsoleSite): Promise<LiveFigures> {
  const { pool, db } = ledger;
  const figures = new Map<string, string>();
  let charts: Html | undefined;
  if (jobs) {
    const { counters } = await readCounters(db);
    const settling = await readOpenSettlements(pool);
    const latency = await readLatency(pool, measuredPayments);
    figures.set('paid', withThousands(counters.settled));
    figures.set('refused', withThousands(counters.denied));
    figures.set('settling', backlogText(settling));
    figures.set('delivered', withThousands(counters.completed));
    addLatency(figures, latency);
    const days = lastDays(Date.now());
    const tokenDays = await readTokenDays(pool, new Date(days[0] ?? 0));
    charts = chartsOf({ days, tokenDays, openCalls: callsByPlace(await countOutbox(db)) });
  }
  if (chat) figures.set('completions', backlogText(await readHolds(pool)));
  figures.set('at', `${new Date().toISOString().slice(11, 19)} UTC`);
  return { figures, charts };
}

function lastDays(nowMs: number): readonly string[] {
  return Array.from({ length: shownDays }, (_, index) =>
    new Date(nowMs - (shownDays - 1 - index) * dayMs).toISOString().slice(0, 10),
  );
}

function callsByPlace(counts: readonly OutboxCount[]): ReadonlyMap<OutboxPlace, number> {
  const sums = new Map<OutboxPlace, number>();
  for (const { place, calls } of counts) sums.set(place, (sums.get(place) ?? 0) + calls);
  return sums;
}

function backlogText({ count, oldestMs }: Backlog): string {
  return count === 0 ? '0' : `${withThousands(count)}, the oldest ${unbroken(oldestMs)}`;
}

/** A duration whose unit stays next to its number. */
function unbroken(ms: number): string {
  return durationText(ms).replaceAll(' ', '\u00a0');
}

function addLatency(figures: Map<string, string>, { settled, delivered }: Latency): void {
  for (const [name, { p50, p95 }] of [
    ['settled', settled],
    ['delivered', delivered],
  ] as const) {
    figures.set(`${name}_ms`, p50 === null ? '–' : unbroken(p50));
    figures.set(`${name}_p95_ms`, p95 === null ? '–' : unbroken(p95));
  }
}

import type pg from 'pg';
import type { EventOf } from '../../../ledger/rules/event.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';

export type Explained = EventOf<'operator_break_explained'>;

/** What was said of each of these breaks until now, the last word last; nothing for those of which nothing was. */
export async function readExplanations(
  pool: pg.Pool,
  breakIds: readonly string[],
): Promise<ReadonlyMap<string, readonly Explained[]>> {
  const streams = await readStreamsUpTo(
    pool,
    breakIds.map((breakId) => `break:${breakId}`),
    Number.MAX_SAFE_INTEGER,
  );
  return new Map(
    streams.map((events) => {
      const explained = events.filter((event) => event.type === 'operator_break_explained');
      return [explained[0]?.data.break_id ?? '', explained];
    }),
  );
}

/** Whether a break is not explained: nothing was said of it, or last that it is open again. */
export function isSaidOpen(said: readonly Explained[] | undefined): boolean {
  const as = said?.at(-1)?.data.as;
  return as === undefined || as === 'open';
}

/** How many breaks a report calls explained of which somebody has said since that they are open. */
export async function countReopened(
  pool: pg.Pool,
  { classes }: Pick<ReportJson, 'classes'>,
): Promise<number> {
  const ids = Object.values(classes).flatMap(({ items }) =>
    items.flatMap(({ explained, break_id: breakId }) => (explained && breakId !== undefined ? breakId : [])),
  );
  const said = await readExplanations(pool, ids);
  return ids.filter((breakId) => isSaidOpen(said.get(breakId))).length;
}

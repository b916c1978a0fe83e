import type { EventData, EventOf } from '../../../ledger/rules/event.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import type { ItemFields } from '../../rules/reconcile/tally.ts';
import type { Lane } from '../../../ledger/store/lane.ts';
import type pg from 'pg';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';

export type Explanation = Pick<EventData<'operator_break_explained'>, 'as' | 'note' | 'operator'>;

/** A break of a reconciliation. */
export interface FoundBreak {
  readonly kind: 'found';
  readonly breakId: string;
  readonly itemClass: string;
  readonly item: ItemFields;
}

/**
 * The break whose id begins so, in the first of the reports that has one. `unknown`: none has. `ambiguous`: several breaks of it begin
 * so.
 */
export async function findBreak(
  reports: AsyncIterable<ReportJson> | Iterable<ReportJson>,
  beginning: string,
): Promise<FoundBreak | { readonly kind: 'unknown' | 'ambiguous' }> {
  for await (const { classes } of reports) {
    const [first, another] = Object.entries(classes).flatMap(([itemClass, { items }]) =>
      items.flatMap((item): FoundBreak[] => {
        const { break_id: breakId } = item;
        return breakId?.startsWith(beginning) ? [{ kind: 'found', breakId, itemClass, item }] : [];
      }),
    );
    if (first) return another ? { kind: 'ambiguous' } : first;
  }
  return { kind: 'unknown' };
}

/** Records the explanation of a break. A later explanation replaces it. */
export async function explainBreak(
  lane: Lane,
  { breakId, itemClass, item }: FoundBreak,
  explanation: Explanation,
): Promise<void> {
  const { network, transaction, log_index, quote_digest } = item;
  await lane.append({
    stream: `break:${breakId}`,
    events: [
      {
        type: 'operator_break_explained',
        data: {
          break_id: breakId,
          ...explanation,
          item_class: itemClass,
          network,
          ...(transaction !== undefined && { transaction }),
          ...(log_index !== undefined && { log_index }),
          ...(quote_digest !== undefined && { quote_digest }),
        },
      },
    ],
  });
}

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

import type { EventData } from '../../../ledger/rules/event.ts';
import type { ReportJson } from '../../rules/reconcile/report.ts';
import type { ItemFields } from '../../rules/reconcile/tally.ts';
import type { Lane } from '../../../ledger/store/lane.ts';

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

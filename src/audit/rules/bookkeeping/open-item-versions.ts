import type { BookedStep } from './book-step.ts';
import { BooksError } from './books-error.ts';
import { changedItems, itemKey, itemsOf, type OpenItem, settlementItem } from './aging.ts';

/** An open item as it was from one event on, until another one. */
export interface ItemVersion {
  readonly item: OpenItem;
  /** The event that made it so: its `seq`. */
  readonly opened: number;
  /** The event that changed it again; undefined while none has. */
  readonly closed: number | undefined;
}

export interface StepVersions {
  /** Known versions that end in the step, with the events that end them. */
  readonly ended: readonly { readonly known: ItemVersion; readonly closed: number }[];
  /** New versions in the order of their events; some end in the step as well. */
  readonly added: readonly ItemVersion[];
}

/** The keys of the items that a step may change, with what they are. */
export function touchedItems({
  entries,
  settlements,
}: Pick<BookedStep, 'entries' | 'settlements'>): OpenItem['of'][] {
  const touched = new Map<string, OpenItem['of']>();
  const note = (of: OpenItem['of']): void => void touched.set(itemKey(of), of);
  for (const entry of entries) for (const item of itemsOf(entry)) note(item);
  for (const { before, after } of settlements) for (const item of [before, after]) if (item) note(item);
  return [...touched.values()];
}

/**
 * How the items of a step change. An event that takes more than is open, which no legal ledger has, changes none.
 * @param known the present versions of the items that it touches; more do no harm
 */
export function itemVersions(
  known: readonly ItemVersion[],
  { entries, settlements }: Pick<BookedStep, 'entries' | 'settlements'>,
): StepVersions {
  const present = new Map(known.map((version) => [itemKey(version.item.of), version]));
  const stored = new Set(known);
  const ended: { readonly known: ItemVersion; readonly closed: number }[] = [];
  const added: ItemVersion[] = [];
  const set = (key: string, seq: number, item: OpenItem | undefined): void => {
    const before = present.get(key);
    if (before && stored.has(before)) ended.push({ known: before, closed: seq });
    else if (before) added.push({ ...before, closed: seq });
    if (item) present.set(key, { item, opened: seq, closed: undefined });
    else present.delete(key);
  };
  for (const entry of entries) {
    const seq = entry.seq ?? 0;
    try {
      for (const [key, item] of changedItems(entry, (one) => present.get(one)?.item)) set(key, seq, item);
    } catch (error) {
      if (!(error instanceof BooksError)) throw error;
    }
  }
  for (const { seq, before, after } of settlements) {
    const of = after ?? before;
    if (of) set(itemKey(of), seq, after && settlementItem(after));
  }
  added.push(...[...present.values()].filter((version) => !stored.has(version)));
  return { ended, added: added.toSorted((a, b) => a.opened - b.opened) };
}

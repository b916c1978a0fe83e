import type pg from 'pg';
import { isCredit, kindOf, type Lot, type OpenItem } from '../../rules/bookkeeping/aging.ts';
import type { BookedStep } from '../../rules/bookkeeping/book-step.ts';
import { type ItemVersion, itemVersions, touchedItems } from '../../rules/bookkeeping/open-item-versions.ts';
import { isHex32 } from '../../../base/values/primitives.ts';
import type { Commodity } from '../../../base/values/entry.ts';
import {
  type EndedItem,
  type GivenItem,
  type NamedItem,
  readPresentItems,
  type StoredItem,
} from '../../../ledger/store/open-items.ts';

/** How the rows of a step name accounts and commodities. */
export interface ItemNames {
  readonly placeOf: (account: string) => number;
  /** By their ids. */
  readonly commodities: ReadonlyMap<number, Commodity>;
}

/** What a step changes in the open items, as rows. */
export async function itemRowsOf(
  client: Pick<pg.Pool, 'query'>,
  generation: number,
  step: BookedStep,
  { placeOf, commodities }: ItemNames,
): Promise<{
  readonly items: readonly GivenItem[];
  readonly ended: readonly EndedItem[];
}> {
  const names = new Set(touchedItems(step).map(({ name }) => name));
  const stored = await readPresentItems(client, generation, [...names]);
  const rows = new Map(stored.map((row) => [versionOf(row, commodities), row]));
  const { ended, added } = itemVersions([...rows.keys()], step);
  const ids = new Map([...commodities].map(([id, { name }]) => [name, id]));
  const idOf = ({ of }: OpenItem): number => ids.get(of.commodity.name) ?? 0;
  return {
    items: added.map((version) => {
      const { item } = version;
      const named = namedItem(version, '');
      return {
        ...named,
        account: item.of.account === undefined ? 0 : placeOf(item.of.account),
        commodity: idOf(item),
        lots: JSON.parse(named.lots) as unknown,
        taken: named.taken === null ? null : (JSON.parse(named.taken) as unknown),
      };
    }),
    ended: ended.map(({ known, closed }) => {
      const { account = 0, opened = 0, commodity = 0 } = rows.get(known) ?? {};
      return { account, opened, closed, commodity };
    }),
  };
}

/** A stored version as the rules have it. */
function versionOf(row: StoredItem, commodities: ReadonlyMap<number, Commodity>): ItemVersion {
  const { opened } = row;
  return { item: openItemOf(row, commodities), opened, closed: undefined };
}

/**
 * An item as it was stored, without the name of its credit account.
 * @throws if its commodity is unknown, which only a changed row can be
 */
export function openItemOf(
  { accountName, commodity: id, name, counterparty, lots, taken }: StoredItem,
  commodities: ReadonlyMap<number, Commodity>,
): OpenItem {
  const kind = accountName === null ? 'settlement' : kindOf(accountName);
  const commodity = commodities.get(id);
  if (!kind || !commodity) throw new Error(`the open item of ${name} has no account or commodity`);
  const of = {
    kind,
    account: accountName ?? undefined,
    name,
    counterparty: counterparty ?? undefined,
    commodity,
  };
  return { of, lots: lotsIn(lots, name), taken: lotsIn(taken ?? '[]', name), accountName: undefined };
}

type LotText = readonly [since: string, atoms: string, quote?: string];

function lotsIn(text: string, name: string): Lot[] {
  return (JSON.parse(text) as readonly LotText[]).map(([since, atoms, quote]) => ({
    since,
    atoms: BigInt(atoms),
    quoteDigest: quote ?? (isHex32(name) ? name : undefined),
  }));
}

/** The quote of a payment's item is its name. */
function lotsText(lots: readonly Lot[], name: string): string {
  const texts = lots.map(({ since, atoms, quoteDigest }): LotText =>
    quoteDigest === undefined || quoteDigest === name
      ? [since, String(atoms)]
      : [since, String(atoms), quoteDigest],
  );
  return JSON.stringify(texts);
}

/** A version by names. */
export function namedItem({ item, opened, closed }: ItemVersion, commodity: string): NamedItem {
  const { of, lots, taken } = item;
  return {
    opened,
    closed: closed ?? null,
    account: of.account ?? null,
    commodity,
    name: of.name,
    counterparty: of.counterparty ?? null,
    lots: lotsText(lots, of.name),
    taken: taken.length > 0 && isCredit(of.kind) ? lotsText(taken, of.name) : null,
  };
}

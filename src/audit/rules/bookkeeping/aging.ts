import { accounts } from './account.ts';
import { BooksError } from './books-error.ts';
import type { Commodity, Entry } from '../../../base/values/entry.ts';

/** What is open at a date, in the order of a report. All but `settlement` are balances of the books. */
export const agedKinds = [
  'settlement',
  'unconfirmed',
  'undelivered',
  'refund_due',
  'suspense',
  'spend',
  'granted_credit',
  'bought_credit',
] as const;
export type AgedKind = (typeof agedKinds)[number];

/** One open item: an amount that the operator owes, or is owed. Credit has one for each grant or purchase that is not used up. */
export interface AgedItem {
  readonly kind: AgedKind;
  /** Of the books; undefined for a settlement, which the books have once it has an outcome. */
  readonly account: string | undefined;
  /** A quote's digest, an account such as `account:7`, else the stream of the transfer or spend. */
  readonly name: string;
  /** Who it is owed to, or by: as rows have it. */
  readonly counterparty: string | undefined;
  /** Of a credit account. */
  readonly accountName: string | undefined;
  readonly commodity: Commodity;
  /** Above 0. */
  readonly atoms: bigint;
  /** When it was opened. RFC 3339, by the time of recording. */
  readonly since: string;
}

/** What was added at one moment and is left. */
export interface Lot {
  readonly since: string;
  readonly quoteDigest: string | undefined;
  readonly atoms: bigint;
}

/** An item with what was added to it and is left, the oldest first. */
export interface OpenItem {
  readonly of: Omit<AgedItem, 'atoms' | 'since' | 'accountName'>;
  readonly lots: readonly Lot[];
  /** What was taken last, in this order: a correction gives it back. */
  readonly taken: readonly Lot[];
  readonly accountName: string | undefined;
}

/** An item that {@link changedItems} works on. */
interface ChangingItem extends OpenItem {
  lots: ChangingLot[];
  taken: ChangingLot[];
}
type ChangingLot = { -readonly [Name in keyof Lot]: Lot[Name] };

/** Its account, commodity and name, which distinguish it from all others. */
export function itemKey({ account = '', commodity, name }: OpenItem['of']): string {
  return `${account}/${commodity.name}/${name}`;
}

/**
 * The items that an entry changes, by their keys; undefined: closed and forgotten. The oldest credit is used first. Closed credit is kept,
 * for what was taken last.
 * @throws BooksError if it takes more than is open
 */
export function changedItems(
  entry: Entry,
  find: (key: string) => OpenItem | undefined,
): ReadonlyMap<string, OpenItem | undefined> {
  const changed = new Map<string, ChangingItem>();
  for (const { of, change } of changesOf(entry)) {
    const key = itemKey(of);
    const known = changed.get(key) ??
      find(key) ?? { of, lots: [], taken: [], accountName: entry.accountName };
    const item = { ...known, lots: known.lots.map(copyOf), taken: known.taken.map(copyOf) };
    changed.set(key, item);
    const opened = of.account?.startsWith('Assets:') ? change : -change;
    if (opened > 0n) add(item, entry, opened);
    else take(item, entry, -opened);
  }
  return new Map(
    [...changed].map(([key, item]) => [
      key,
      item.lots.length > 0 || isCredit(item.of.kind) ? item : undefined,
    ]),
  );
}

/** The items that an entry adds to, or takes from. */
export function itemsOf(entry: Entry): OpenItem['of'][] {
  return changesOf(entry).map(({ of }) => of);
}

/** `change`: above 0 on the debit side. */
function changesOf(entry: Entry): { readonly of: OpenItem['of']; readonly change: bigint }[] {
  return entry.moves.flatMap(({ debit, credit, commodity, atoms }) =>
    [
      { account: debit, change: atoms },
      { account: credit, change: -atoms },
    ].flatMap(({ account, change }) => {
      const kind = kindOf(account);
      if (!kind) return [];
      const of = { kind, account, name: nameOf(kind, entry), counterparty: entry.counterparty, commodity };
      return [{ of, change }];
    }),
  );
}

/** An item as it is listed: credit has several. */
export function listed({ of, lots, accountName }: OpenItem): AgedItem[] {
  return lots.map(({ since, atoms }) => ({ ...of, accountName, since, atoms }));
}

/** A payment without an outcome as an item. */
export function settlementItem({ since, atoms, accountName, ...of }: AgedItem): OpenItem {
  return { of, accountName, lots: [{ since, quoteDigest: undefined, atoms }], taken: [] };
}

/**
 * The open items of the books: a fold over the entries that are posted, so the items of an account add up to its balance. Closed items
 * are forgotten: memory grows with the open items.
 */
export class OpenItems {
  readonly #items = new Map<string, OpenItem>();

  /** @throws BooksError if it takes more than is open */
  post(entry: Entry): void {
    for (const [key, item] of changedItems(entry, (one) => this.#items.get(one)))
      if (item) this.#items.set(key, item);
      else this.#items.delete(key);
  }

  list(): AgedItem[] {
    return [...this.#items.values()].flatMap(listed);
  }
}

/** By kind, then the oldest first. */
export function orderItems(items: readonly AgedItem[]): AgedItem[] {
  const place = ({ kind }: AgedItem): number => agedKinds.indexOf(kind);
  return items.toSorted(
    (a, b) =>
      place(a) - place(b) ||
      order(a.commodity.name, b.commodity.name) ||
      order(a.since, b.since) ||
      order(a.name, b.name),
  );
}

const copyOf = (lot: Lot): ChangingLot => ({ ...lot });

function add(item: ChangingItem, { category, recordedAt, quoteDigest }: Entry, atoms: bigint): void {
  const back = category === 'credit_correction' ? takeBack(item, atoms) : [];
  const left = back.reduce((rest, lot) => rest - lot.atoms, atoms);
  for (const lot of back) {
    const known = item.lots.find((one) => isSame(one, lot));
    if (known) known.atoms += lot.atoms;
    else item.lots.unshift(lot);
  }
  const now = { since: recordedAt, quoteDigest, atoms: left };
  const known = item.lots.find((one) => isSame(one, now));
  if (known) known.atoms += left;
  else if (left > 0n) item.lots.push(now);
}

function isSame(one: Lot, other: Lot): boolean {
  return one.since === other.since && one.quoteDigest === other.quoteDigest;
}

/** Up to this many atoms of the items taken last, the newest first. */
function takeBack(item: ChangingItem, atoms: bigint): ChangingLot[] {
  const back: ChangingLot[] = [];
  let left = atoms;
  for (const lot of item.taken.toReversed()) {
    const part = lot.atoms < left ? lot.atoms : left;
    lot.atoms -= part;
    left -= part;
    if (part > 0n) back.push({ ...lot, atoms: part });
  }
  return back;
}

/** A top-up that is reversed takes its own credit first. */
function take(item: ChangingItem, { category, quoteDigest, seq }: Entry, atoms: bigint): void {
  const { lots } = item;
  const own = category === 'top_up_reversal' ? lots.filter((lot) => lot.quoteDigest === quoteDigest) : [];
  let left = atoms;
  item.taken = [];
  for (const lot of new Set([...own, ...lots])) {
    const part = lot.atoms < left ? lot.atoms : left;
    if (part === 0n) break;
    lot.atoms -= part;
    left -= part;
    item.taken.push({ ...lot, atoms: part });
  }
  if (left > 0n)
    throw new BooksError(seq ?? 0, `${item.of.name} has less than that open on ${item.of.account}`);
  lots.splice(0, lots.length, ...lots.filter((lot) => lot.atoms > 0n));
}

/** A top-up has a quote as well: its credit is the account's. */
function nameOf(kind: AgedKind, { quoteDigest, counterparty, stream }: Entry): string {
  return (isCredit(kind) ? counterparty : (quoteDigest ?? stream)) ?? '';
}

/** Whether an item's kind is credit: what was taken of it can be given back. */
export function isCredit(kind: AgedKind): boolean {
  return kind === 'granted_credit' || kind === 'bought_credit';
}

/** What an account's balances are as items; undefined if they do not age. */
export function kindOf(account: string): AgedKind | undefined {
  switch (account) {
    case accounts.refundsDue:
      return 'refund_due';
    case accounts.suspense:
      return 'suspense';
    case accounts.undelivered:
      return 'undelivered';
    case accounts.grantedCredit:
      return 'granted_credit';
    case accounts.boughtCredit:
      return 'bought_credit';
    default:
      if (account.startsWith('Assets:Unconfirmed:')) return 'unconfirmed';
      return account.startsWith('Assets:Receivable:Spends:') ? 'spend' : undefined;
  }
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

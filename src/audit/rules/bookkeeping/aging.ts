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
interface Lot {
  readonly since: string;
  readonly quoteDigest: string | undefined;
  atoms: bigint;
}

interface OpenItem {
  readonly of: Omit<AgedItem, 'atoms' | 'since'> & { readonly account: string };
  readonly lots: Lot[];
  /** What was taken last, in this order: a correction gives it back. */
  taken: Lot[];
}

/**
 * The open items of the books: a fold over the entries that are posted, so the items of an account add up to its balance. Closed items
 * are forgotten: memory grows with the open items. The oldest credit is used first.
 */
export class OpenItems {
  readonly #items = new Map<string, OpenItem>();

  post(entry: Entry): void {
    for (const { debit, credit, commodity, atoms } of entry.moves) {
      this.#move(entry, debit, commodity, atoms);
      this.#move(entry, credit, commodity, -atoms);
    }
  }

  list(): AgedItem[] {
    return [...this.#items.values()].flatMap(({ of, lots }) =>
      lots.map(({ since, atoms }) => ({ ...of, since, atoms })),
    );
  }

  /** `change`: above 0 on the debit side. */
  #move(entry: Entry, account: string, commodity: Commodity, change: bigint): void {
    const kind = kindOf(account);
    if (!kind) return;
    const name = nameOf(kind, entry);
    const key = `${account}/${commodity.name}/${name}`;
    const { counterparty, accountName } = entry;
    const item = this.#items.get(key) ?? {
      of: { kind, account, name, counterparty, accountName, commodity },
      lots: [],
      taken: [],
    };
    const opened = account.startsWith('Assets:') ? change : -change;
    if (opened > 0n) add(item, entry, opened);
    else take(item, entry, -opened);
    if (item.lots.length > 0) this.#items.set(key, item);
    else if (!isCredit(kind)) this.#items.delete(key);
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

function add(item: OpenItem, { category, recordedAt, quoteDigest }: Entry, atoms: bigint): void {
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
function takeBack(item: OpenItem, atoms: bigint): Lot[] {
  const back: Lot[] = [];
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
function take(item: OpenItem, { category, quoteDigest, seq }: Entry, atoms: bigint): void {
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

function isCredit(kind: AgedKind): boolean {
  return kind === 'granted_credit' || kind === 'bought_credit';
}

/** The accounts with balances that age. */
function kindOf(account: string): AgedKind | undefined {
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

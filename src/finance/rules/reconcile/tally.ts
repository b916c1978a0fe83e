import type { OutFact } from './fact.ts';
import { accountKey, type Account, allClasses, type ItemClass, itemClasses } from './reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';

/** An item's fields as the report has them; amounts are decimal strings of atoms. */
export interface ItemFields {
  readonly of: 'payment' | OutFact['of'] | 'spend' | 'transfer' | 'token';
  readonly network: string;
  readonly asset?: string | undefined;
  readonly pay_to?: string | undefined;
  readonly seq?: number | undefined;
  readonly quote_digest?: string | undefined;
  readonly payer?: string | undefined;
  readonly payment_nonce?: string | undefined;
  readonly recorded_at?: string | undefined;
  readonly ledger_amount?: string | undefined;
  readonly chain_amount?: string | undefined;
  /** Of a payment: the amount refunded so far. */
  readonly refunded_amount?: string | undefined;
  /** Of an asset mismatch: the token that was transferred. */
  readonly chain_asset?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly transaction?: string | undefined;
  readonly block_number?: string | undefined;
  readonly log_index?: number | undefined;
  /** A machine-readable code. */
  readonly why?: string | undefined;
  /** Of unrecorded money: the payment authorization that moved it is not in this ledger. */
  readonly foreign?: boolean | undefined;
  /** Of an open item: it began in an earlier period. */
  readonly carried?: boolean | undefined;
  /** Of a token: the decimals by the ledger or the configuration, and by the contract. */
  readonly decimals?: number | undefined;
  readonly chain_decimals?: number | null | undefined;
  /** Of a break: its id in every report, and the operator's explanation. */
  readonly break_id?: string | undefined;
  readonly explained?: BreakExplanation | undefined;
}

/** What an operator said of a break. */
export interface BreakExplanation {
  /** A machine-readable code. */
  readonly as: string;
  readonly note: string;
  readonly operator: string;
  /** RFC 3339, as recorded. */
  readonly at: string;
}

interface Movement {
  count: number;
  in: bigint;
  out: bigint;
}

/** Items beyond the listed ones, by account and counterparty. */
interface Group {
  readonly network: string;
  readonly asset: string | undefined;
  readonly pay_to: string | undefined;
  readonly counterparty: string;
  count: number;
  atoms: bigint;
  first: Place;
  last: Place;
}

type Place = Pick<ItemFields, 'seq' | 'transaction' | 'block_number' | 'log_index'>;

export interface GroupJson extends Omit<Group, 'atoms'> {
  readonly atoms: string;
}

export interface ClassJson {
  readonly kind: 'ok' | 'open' | 'break';
  readonly count: number;
  /** Of breaks: how many are explained. */
  readonly explained?: number | undefined;
  readonly items: readonly ItemFields[];
  readonly groups: readonly GroupJson[];
}

/** The number of items listed per class; further ones are grouped by counterparty. */
export const mostListed = 10_000;
/** The number of groups per class; further counterparties share the group `others`. */
const mostGroups = 1_000;

/** The items of a class, given in the order in which they are listed. */
class ClassTally {
  count = 0;
  protected readonly items: ItemFields[] = [];
  protected readonly groups = new Map<string, Group>();

  add(fields: ItemFields, listed: number): void {
    this.count += 1;
    if (this.items.length < listed) this.items.push(fields);
    else this.group(fields);
  }

  json(kind: ClassJson['kind'], _listed: number): ClassJson {
    const groups = [...this.groups.values()].map(groupJson);
    return { kind, count: this.count, items: [...this.items], groups };
  }

  protected group(fields: ItemFields): void {
    const party = partyOf(fields);
    const isKept = this.groups.size < mostGroups || this.groups.has(groupKey(fields, party));
    addTo(this.groups, fields, isKept ? party : others);
  }
}

/**
 * The items of a class of which each has a `seq`, given in any order: those with the lowest are listed, and of the others those
 * counterparties with the lowest keys have their own groups. So the same items give the same report.
 */
class UnorderedTally extends ClassTally {
  /** Counterparties from this key on share a group. */
  #end: string | undefined;

  override add(fields: ItemFields, listed: number): void {
    this.count += 1;
    this.items.push(fields);
    if (this.items.length >= 2 * listed + mostGroups) this.#trim(listed);
  }

  override json(kind: ClassJson['kind'], listed: number): ClassJson {
    this.#trim(listed);
    this.#shareGroups();
    const groups = [...this.groups.values()].toSorted((a, b) => seqOf(a.first) - seqOf(b.first));
    return { kind, count: this.count, items: [...this.items], groups: groups.map(groupJson) };
  }

  protected override group(fields: ItemFields): void {
    const party = partyOf(fields);
    const isShared = this.#end !== undefined && groupKey(fields, party) >= this.#end;
    addTo(this.groups, fields, isShared ? others : party);
    if (this.groups.size >= 3 * mostGroups) this.#shareGroups();
  }

  /** Sorts the items and groups those beyond the listed ones. */
  #trim(listed: number): void {
    this.items.sort((a, b) => seqOf(a) - seqOf(b));
    for (const fields of this.items.splice(listed)) this.group(fields);
  }

  #shareGroups(): void {
    const named = [...this.groups].filter(([, { counterparty }]) => counterparty !== others);
    for (const [key, group] of named.toSorted(([a], [b]) => (a < b ? -1 : 1)).slice(mostGroups)) {
      if (this.#end === undefined || key < this.#end) this.#end = key;
      this.groups.delete(key);
      mergeInto(this.groups, { ...group, counterparty: others });
    }
  }
}

const others = 'others';

function partyOf({ payer, from, to, pay_to: payTo }: ItemFields): string {
  return payer ?? (from === payTo ? to : from) ?? 'nobody';
}

function groupKey(
  { network, asset, pay_to: payTo }: Pick<Group, 'network'> & Partial<Group>,
  name: string,
): string {
  return `${network}/${asset}/${payTo}/${name}`;
}

function addTo(groups: Map<string, Group>, fields: ItemFields, counterparty: string): void {
  const { network, asset, pay_to, seq, transaction, block_number, log_index } = fields;
  const place: Place = { seq, transaction, block_number, log_index };
  const atoms = BigInt(fields.chain_amount ?? fields.ledger_amount ?? 0);
  mergeInto(groups, { network, asset, pay_to, counterparty, count: 1, atoms, first: place, last: place });
}

function mergeInto(groups: Map<string, Group>, more: Group): void {
  const key = groupKey(more, more.counterparty);
  const group = groups.get(key);
  if (!group) return void groups.set(key, more);
  group.count += more.count;
  group.atoms += more.atoms;
  if (seqOf(more.first) < seqOf(group.first)) group.first = more.first;
  if (seqOf(more.last) >= seqOf(group.last)) group.last = more.last;
}

type ItemObserver = (name: ItemClass, fields: ItemFields, transfer: ChainTransfer | undefined) => void;

/** Counts and sums every item of a reconciliation; lists the first ones of each class. */
export class Tally {
  readonly #classes = new Map<ItemClass, ClassTally>(
    allClasses.map((name) => [name, name === 'matched' ? new UnorderedTally() : new ClassTally()]),
  );
  readonly #movements = new Map<string, Map<ItemClass, Movement>>();
  readonly #payees: ReadonlySet<string>;
  readonly #listed: number;
  readonly #onItem: ItemObserver | undefined;

  /** `payees` are `network/address` of every account; `onItem` gets every item. */
  constructor(payees: ReadonlySet<string>, listed = mostListed, onItem?: ItemObserver) {
    this.#payees = payees;
    this.#listed = listed;
    this.#onItem = onItem;
  }

  /** Adds an item, and the amount of its transfer if it has one within the period. */
  add(name: ItemClass, fields: ItemFields, transfer?: ChainTransfer): void {
    this.#classes.get(name)?.add(fields, this.#listed);
    this.#onItem?.(name, fields, transfer);
    if (transfer) this.#move(name, transfer);
  }

  /** Adds a payment on which the ledger and the chain agree in all, so that the observer need not know it. */
  addPlain(fields: ItemFields, transfer: ChainTransfer): void {
    this.#classes.get('matched')?.add(fields, this.#listed);
    this.#move('matched', transfer);
  }

  /** The same for an item that is only counted in its group, never listed. */
  addToGroup(name: ItemClass, fields: ItemFields, transfer: ChainTransfer): void {
    this.#classes.get(name)?.add(fields, 0);
    this.#onItem?.(name, fields, transfer);
    this.#move(name, transfer);
  }

  #move(name: ItemClass, transfer: ChainTransfer): void {
    const { network, asset, from, to, amount } = transfer;
    if (this.#payees.has(`${network}/${to}`))
      this.#movement({ network, asset, payTo: to }, name).in += amount;
    if (this.#payees.has(`${network}/${from}`))
      this.#movement({ network, asset, payTo: from }, name).out += amount;
    const counted = this.#payees.has(`${network}/${to}`) ? to : from;
    if (this.#payees.has(`${network}/${counted}`))
      this.#movement({ network, asset, payTo: counted }, name).count += 1;
  }

  /** An account's amounts in and out, by class. */
  movements(account: Account): ReadonlyMap<ItemClass, Movement> {
    return this.#movements.get(accountKey(account)) ?? new Map<ItemClass, Movement>();
  }

  /** An account's amount in less its amount out. */
  net(account: Account): bigint {
    return [...this.movements(account).values()].reduce((sum, { in: came, out }) => sum + came - out, 0n);
  }

  countOf(kind: 'ok' | 'open' | 'break'): number {
    return allClasses.reduce(
      (sum, name) => sum + (itemClasses[name] === kind ? (this.#classes.get(name)?.count ?? 0) : 0),
      0,
    );
  }

  countOfClass(name: ItemClass): number {
    return this.#classes.get(name)?.count ?? 0;
  }

  /** The classes that have items, as the report has them. */
  json(): Partial<Record<ItemClass, ClassJson>> {
    const found = [...this.#classes].filter(([, { count }]) => count > 0);
    return Object.fromEntries(
      found.map(([name, tally]) => [name, tally.json(itemClasses[name], this.#listed)]),
    );
  }

  #movement(account: Account, name: ItemClass): Movement {
    const key = accountKey(account);
    let classes = this.#movements.get(key);
    if (!classes) this.#movements.set(key, (classes = new Map<ItemClass, Movement>()));
    let movement = classes.get(name);
    if (!movement) classes.set(name, (movement = { count: 0, in: 0n, out: 0n }));
    return movement;
  }
}

/** 0 if it has no place: then the order is that of arrival. */
function seqOf({ seq = 0 }: Place): number {
  return seq;
}

function groupJson({ atoms, ...rest }: Group): GroupJson {
  return { ...rest, atoms: String(atoms) };
}

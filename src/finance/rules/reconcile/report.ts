import { canonicalJson, type CanonicalValue } from '../../../base/values/canonical-json.ts';
import type { LedgerSums } from './classify.ts';
import {
  accountKey,
  type Account,
  allClasses,
  type ItemClass,
  type PeriodOfTime,
  type TokenTerms,
} from './reconcile.ts';
import { type BridgeJson, bridgeJson } from './bridge-json.ts';
import type { Bridge } from './bridge.ts';
import type { BreakExplanation, ClassJson, Tally, ItemFields } from './tally.ts';
import { createHash } from 'node:crypto';

/** An account's balance on the chain. `computed`: from the other end and the logs between; null if neither end is known. */
export interface Balance {
  readonly atoms: bigint | null;
  readonly how: 'chain' | 'computed' | 'no_archive_state';
}

export interface AccountBooks extends Account {
  /** Undefined if neither the ledger nor the configuration has the token. */
  readonly token: TokenTerms | undefined;
  readonly opening: Balance;
  readonly closing: Balance;
  /** Undefined if the events contradict each other, so that there are no books. */
  readonly bridge: Bridge | undefined;
}

/** How the completeness of the logs was checked. */
export type Completeness =
  /** On every account, the balance changed by the sum of the logs. */
  | 'balance'
  /** All logs were requested twice. */
  | 'two_passes'
  /** The first and the last were requested twice. */
  | 'sample';

export interface NetworkBooks {
  readonly network: string;
  readonly fromBlock: bigint;
  readonly toBlock: bigint;
  /** Of `toBlock`. */
  readonly toHash: string;
  readonly isCovered: boolean;
  readonly completeness: Completeness;
}

/** The ledger at the time of reading. */
export interface PinnedLedger {
  readonly size: number;
  /** base64. */
  readonly root: string;
  /** The signed head of that size; undefined if nothing is sealed. */
  readonly checkpoint: string | undefined;
  /** Its first error. */
  readonly fault: { readonly seq: number; readonly words: string } | undefined;
}

export interface Reconciled {
  readonly period: PeriodOfTime;
  readonly ledger: PinnedLedger;
  readonly networks: readonly NetworkBooks[];
  readonly accounts: readonly AccountBooks[];
  readonly sums: LedgerSums;
  readonly tally: Tally;
  /** By the id of the break. */
  readonly explanations: ReadonlyMap<string, BreakExplanation>;
}

export type ReconcileResult = 'clean' | 'open_items' | 'breaks';

/** A ledger that differs from its sealed events is a break. */
function resultOf({ ledger, tally }: Pick<Reconciled, 'ledger' | 'tally'>): ReconcileResult {
  if (ledger.fault || tally.countOf('break') > 0) return 'breaks';
  return tally.countOf('open') > 0 ? 'open_items' : 'clean';
}

interface BalanceJson {
  readonly atoms: string | null;
  readonly how: Balance['how'];
}

/** An account's opening, movements by class and closing, all in atoms. */
export interface AccountJson {
  readonly network: string;
  readonly asset: string;
  readonly pay_to: string;
  readonly symbol: string | null;
  readonly decimals: number | null;
  readonly opening: BalanceJson;
  readonly movements: readonly {
    readonly class: ItemClass;
    readonly count: number;
    readonly in: string;
    readonly out: string;
  }[];
  readonly closing: BalanceJson;
  /** By the ledger, and by how much the chain has more. */
  readonly ledger: {
    readonly opening: string;
    readonly in: string;
    readonly out: string;
    readonly closing: string;
    readonly difference_opening: string | null;
    readonly difference_closing: string | null;
  };
  /** From the closing of the books to that of the chain; absent in reports of earlier versions, null if there are no books. */
  readonly bridge?: BridgeJson | null;
}

export interface ReportJson {
  readonly tollbook_reconciliation: 1;
  readonly period: PeriodOfTime;
  readonly ledger: {
    readonly size: number;
    readonly root: string;
    readonly checkpoint: string | null;
    readonly fault: { readonly seq: number; readonly words: string } | null;
  };
  readonly networks: readonly {
    readonly network: string;
    readonly from_block: string;
    readonly to_block: string;
    readonly to_hash: string;
    readonly is_covered: boolean;
    readonly completeness: Completeness;
  }[];
  readonly accounts: readonly AccountJson[];
  readonly classes: Readonly<Partial<Record<ItemClass, ClassJson>>>;
  readonly result: ReconcileResult;
  readonly breaks: number;
  /** Breaks that an operator has explained; the others are open. */
  readonly breaks_explained: number;
  readonly open_items: number;
}

/** False for a period that is over on every chain without a block, such as one of a wrong year, and of which the ledger says nothing. */
export function hasCompared({
  result,
  ledger,
  networks,
}: Pick<ReportJson, 'result' | 'ledger' | 'networks'>): boolean {
  if (result !== 'clean' || ledger.fault || networks.length === 0) return true;
  return networks.some(
    ({ from_block: from, to_block: to, is_covered: isCovered }) => !isCovered || BigInt(from) <= BigInt(to),
  );
}

/** Whether the bridge of an account leaves an amount that no item explains. */
export function leavesUnexplained({ accounts }: Pick<ReportJson, 'accounts'>): boolean {
  return accounts.some(({ bridge }) => (bridge?.not_explained ?? '0') !== '0');
}

/** The bytes of a report: canonical JSON (RFC 8785). */
export function reportText(report: ReportJson): string {
  return canonicalJson(report as unknown as CanonicalValue);
}

/**
 * The stored report. Nothing in it depends on when or where it was made: the same ledger and blocks give the same
 * bytes.
 */
export function reportJson(reconciled: Reconciled): ReportJson {
  const { period, ledger, networks, tally } = reconciled;
  const classes = withExplanations(tally.json(), reconciled.explanations);
  return {
    tollbook_reconciliation: 1,
    period: { ...period },
    ledger: {
      size: ledger.size,
      root: ledger.root,
      checkpoint: ledger.checkpoint ?? null,
      fault: ledger.fault ? { ...ledger.fault } : null,
    },
    networks: networks.map((books) => ({
      network: books.network,
      from_block: String(books.fromBlock),
      to_block: String(books.toBlock),
      to_hash: books.toHash,
      is_covered: books.isCovered,
      completeness: books.completeness,
    })),
    accounts: reconciled.accounts
      .filter((account) => !isIdle(account, reconciled))
      .map((account) => accountJson(account, reconciled)),
    classes,
    result: resultOf(reconciled),
    breaks: tally.countOf('break') + (ledger.fault ? 1 : 0),
    breaks_explained: Object.values(classes).reduce((sum, { explained = 0 }) => sum + explained, 0),
    open_items: tally.countOf('open'),
  };
}

type Classes = ReportJson['classes'];

/** The classes with the id of each listed break, and the operator's explanation. Breaks that are only counted stay open. */
function withExplanations(classes: Classes, explanations: ReadonlyMap<string, BreakExplanation>): Classes {
  const named = allClasses.flatMap((name) => {
    const found = classes[name];
    if (found?.kind !== 'break') return found ? [[name, found] as const] : [];
    const items = found.items.map((item) => {
      const id = breakId(name, item);
      const explained = explanations.get(id);
      return { ...item, break_id: id, ...(explained && { explained }) };
    });
    const explained = items.filter((item) => item.explained !== undefined).length;
    return [[name, { ...found, explained, items }] as const];
  });
  return Object.fromEntries(named);
}

function isEmpty(atoms: bigint | null | undefined): boolean {
  return (atoms ?? 0n) === 0n;
}

/** A token and payee without any balance or transfer. */
function isIdle(account: AccountBooks, { sums, tally }: Reconciled): boolean {
  const key = accountKey(account);
  return (
    isEmpty(account.opening.atoms) &&
    isEmpty(account.closing.atoms) &&
    [sums.opening, sums.in, sums.out].every((sum) => isEmpty(sum.get(key))) &&
    tally.movements(account).size === 0
  );
}

function accountJson(account: AccountBooks, { sums, tally }: Reconciled): AccountJson {
  const { network, asset, payTo, token, opening, closing } = account;
  const key = accountKey(account);
  const moved = tally.movements(account);
  const own = [sums.opening, sums.in, sums.out].map((sum) => sum.get(key) ?? 0n);
  const [before = 0n, came = 0n, left = 0n] = own;
  const after = before + came - left;
  return {
    network,
    asset,
    pay_to: payTo,
    symbol: token?.symbol ?? null,
    decimals: token?.decimals ?? null,
    opening: balanceJson(opening),
    movements: allClasses.flatMap((name) => {
      const movement = moved.get(name);
      if (!movement) return [];
      return [{ class: name, count: movement.count, in: String(movement.in), out: String(movement.out) }];
    }),
    closing: balanceJson(closing),
    ledger: {
      opening: String(before),
      in: String(came),
      out: String(left),
      closing: String(after),
      difference_opening: beyond(opening, before),
      difference_closing: beyond(closing, after),
    },
    bridge: account.bridge ? bridgeJson(account.bridge, opening.atoms, before, closing.atoms) : null,
  };
}

function beyond({ atoms }: Balance, ledger: bigint): string | null {
  return atoms === null ? null : String(atoms - ledger);
}

function balanceJson({ atoms, how }: Balance): BalanceJson {
  return { atoms: atoms === null ? null : String(atoms), how };
}

/**
 * A break's id, the same in every run and period that finds it, from its class, token, place on the chain, payment and amounts.
 * Not from its number, its event, or facts that only some runs find.
 */
export function breakId(name: ItemClass, item: ItemFields): string {
  const { of, network, asset, pay_to, quote_digest, transaction, log_index } = item;
  const { ledger_amount, chain_amount, chain_asset, decimals, chain_decimals } = item;
  const nonce = of === 'payment' ? item.payment_nonce : undefined;
  const named = { class: name, of, network, asset, pay_to, quote_digest, payment_nonce: nonce };
  const all = {
    ...named,
    transaction,
    log_index,
    ledger_amount,
    chain_amount,
    chain_asset,
    decimals,
    chain_decimals,
  };
  const known = Object.fromEntries(
    Object.entries(all).flatMap(([key, value]) => (value == null ? [] : [[key, value]])),
  );
  return `0x${createHash('sha256').update(canonicalJson(known)).digest('hex')}`;
}

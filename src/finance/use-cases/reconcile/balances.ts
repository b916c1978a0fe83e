import type { Address } from '../../../base/values/primitives.ts';
import type { AccountBooks, Balance, Completeness } from '../../rules/reconcile/report.ts';
import { type Account, accountKey } from '../../rules/reconcile/reconcile.ts';
import { type ChainTransfer } from '../../../payments/rules/chain-transfer.ts';
import type { Block } from '../../../payments/peers/chain/blocks.ts';
import type { ChainScanner } from '../../../payments/peers/chain/transfer-scan.ts';
import { blockAt, type PinnedBlocks } from './blocks.ts';
import { answered, ReconcileError, unanswered } from './reconcile-error.ts';

/** The net sum of transfers, by account. */
export class NetSums {
  readonly #sums = new Map<string, bigint>();

  add({ network, asset, from, to, amount }: ChainTransfer): void {
    this.#add({ network, asset, payTo: to }, amount);
    this.#add({ network, asset, payTo: from }, -amount);
  }

  of(account: Account): bigint {
    return this.#sums.get(accountKey(account)) ?? 0n;
  }

  #add(account: Account, amount: bigint): void {
    const key = accountKey(account);
    this.#sums.set(key, (this.#sums.get(key) ?? 0n) + amount);
  }
}

export interface BalanceQuestion {
  readonly chain: ChainScanner;
  readonly blocks: PinnedBlocks;
  readonly accounts: readonly Account[];
  /** Within the period. */
  readonly net: NetSums;
  /** The sums from the period's end up to a later block. */
  netUntil(to: bigint): Promise<NetSums>;
}

/** The balances at both ends of the period, and whether they prove that the logs are complete. */
export interface Balances {
  readonly books: ReadonlyMap<string, Pick<AccountBooks, 'opening' | 'closing'>>;
  /** Undefined if the node has no state of these blocks. */
  readonly completeness: Extract<Completeness, 'balance'> | undefined;
}

/**
 * The balance of each account at both ends. If the node has both, the logs between must explain the difference. Where it has
 * one, the other is computed; if it has no such block, both are computed from a later block.
 */
export async function readBalances(question: BalanceQuestion): Promise<Balances> {
  const { chain, blocks, accounts, net } = question;
  const before = blocks.from > 0n ? await blockAt(chain, blocks.from - 1n) : undefined;
  const books = new Map<string, Pick<AccountBooks, 'opening' | 'closing'>>();
  let isProven = true;
  for (const account of accounts) {
    const opening = before ? await balanceAt(chain, account, before.hash) : 0n;
    const closing = await balanceAt(chain, account, blocks.toHash);
    const moved = net.of(account);
    isProven &&= opening !== undefined && closing !== undefined;
    if (opening !== undefined && closing !== undefined && opening + moved !== closing)
      throw unexplained(account, blocks, moved, closing - opening);
    books.set(accountKey(account), await bothEnds(question, account, opening, closing));
  }
  return { books, completeness: isProven ? 'balance' : undefined };
}

async function bothEnds(
  question: BalanceQuestion,
  account: Account,
  opening: bigint | undefined,
  closing: bigint | undefined,
): Promise<Pick<AccountBooks, 'opening' | 'closing'>> {
  const moved = question.net.of(account);
  if (opening !== undefined && closing !== undefined)
    return { opening: fromChain(opening), closing: fromChain(closing) };
  if (closing !== undefined) return { opening: computed(closing - moved), closing: fromChain(closing) };
  if (opening !== undefined) return { opening: fromChain(opening), closing: computed(opening + moved) };
  const later = await laterBalance(question, account);
  if (later === undefined) return { opening: unknown, closing: unknown };
  return { opening: computed(later - moved), closing: computed(later) };
}

const unknown: Balance = { atoms: null, how: 'no_archive_state' };

function fromChain(atoms: bigint): Balance {
  return { atoms, how: 'chain' };
}

function computed(atoms: bigint): Balance {
  return { atoms, how: 'computed' };
}

/** The balance at the period's end, from the last final block and the logs since. */
async function laterBalance(
  { chain, blocks, netUntil }: BalanceQuestion,
  account: Account,
): Promise<bigint | undefined> {
  const answer = await chain.finalizedBlock();
  if (answer.kind === 'unavailable') throw unanswered(chain.network, 'its last final block', answer);
  if (answer.block.number <= blocks.to) return undefined;
  const balance = await balanceAt(chain, account, answer.block.hash);
  return balance === undefined ? undefined : balance - (await netUntil(answer.block.number)).of(account);
}

async function balanceAt(
  chain: ChainScanner,
  { asset, payTo }: Account,
  hash: Block['hash'],
): Promise<bigint | undefined> {
  const what = `what ${payTo} holds of ${asset}`;
  return answered(chain.network, what, await chain.balanceAt(asset as Address, payTo as Address, hash));
}

function unexplained(
  { network, asset, payTo }: Account,
  { from, to }: PinnedBlocks,
  moved: bigint,
  changed: bigint,
): ReconcileError {
  return new ReconcileError(
    'logs_incomplete',
    `the transfers of ${asset} that the RPC for ${network} shows in the blocks ${from} to ${to} add up to ${moved} atoms for ${payTo}, ` +
      `but its balance changed by ${changed}: the node lacks logs, or the token changes balances without events. Nothing was stored: use another RPC`,
  );
}

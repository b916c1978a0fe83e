import type pg from 'pg';
import { ownAccounts } from '../../../payments/use-cases/costs/own-accounts.ts';
import {
  type CostAnswer,
  type CostOrder,
  recordCost,
} from '../../../payments/use-cases/costs/record-cost.ts';
import type { Address, Caip2, Hex } from '../../../base/values/primitives.ts';
import type { Chain, Transfer, TransfersAnswer } from '../../../payments/peers/chain/chain.ts';
import type { AcceptedToken } from '../../../base/values/token.ts';
import { type KnownPayee, listPayees } from '../../../payments/store/refunds.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** Why a transaction cannot be recorded. */
export type NoTransfers =
  | 'network_unknown'
  | 'wrong_chain'
  | 'chain_unavailable'
  | 'transaction_unknown'
  | 'transaction_failed'
  | 'not_final';

export interface Refused<Code extends string> {
  readonly kind: 'refused';
  readonly code: Code;
  /** The value that led to the refusal. */
  readonly detail?: string | undefined;
}

export function refused<Code extends string>(code: Code, detail?: string): Refused<Code> {
  return { kind: 'refused', code, detail };
}

const maxTries = 5;

/** Tries again while something else is recorded between reading and appending. */
export async function tryAgain<A extends { readonly kind: string; readonly code?: string }>(
  attempt: () => Promise<A>,
): Promise<A> {
  let answer = await attempt();
  for (let tries = 1; tries < maxTries && answer.code === 'superseded'; tries++) answer = await attempt();
  return answer;
}

/** The transfers of a transaction, and its block. */
export interface MinedTransfers {
  readonly kind: 'mined';
  readonly blockNumber: bigint;
  readonly blockHash: Hex;
  readonly transfers: readonly Transfer[];
  /** The payment authorizations that moved some of them. */
  readonly authorizations: Extract<TransfersAnswer, { kind: 'mined' }>['authorizations'];
}

/** The configured chains, by network. */
export type Chains = ReadonlyMap<string, Chain>;

/** The transfers of a transaction that is in a block, final or not: of these tokens, or of any if they are left out. */
export async function readMined(
  chains: Chains,
  network: Caip2,
  transaction: Hex,
  assets?: readonly Address[],
): Promise<MinedTransfers | Refused<NoTransfers>> {
  const chain = chains.get(network);
  if (!chain) return refused('network_unknown', network);
  const read = await chain.readTransfers(transaction, assets);
  switch (read.kind) {
    case 'mined':
      return read;
    case 'reverted':
      return refused('transaction_failed', `block ${read.blockNumber}`);
    case 'unavailable':
      return unavailable(read.cause, network);
    case 'pending':
      return refused('not_final', 'it is not in a block yet');
    case 'absent':
      return refused('transaction_unknown');
  }
}

/** Undefined if the block is final and canonical. */
export async function requireFinal(
  chains: Chains,
  network: Caip2,
  { blockNumber, blockHash }: { readonly blockNumber: bigint; readonly blockHash: string },
): Promise<Refused<NoTransfers> | undefined> {
  const chain = chains.get(network);
  if (!chain) return refused('network_unknown', network);
  const finalized = await chain.finalizedBlock();
  if (finalized.kind === 'unavailable') return unavailable(finalized.cause, network);
  const { number } = finalized.block;
  if (number < blockNumber)
    return refused('not_final', `it is in block ${blockNumber}, and the last final block is ${number}`);
  const canonical = await chain.blockHashAt(blockNumber);
  if (canonical.kind === 'unavailable') return unavailable(canonical.cause, network);
  return canonical.hash === blockHash
    ? undefined
    : refused('not_final', `block ${blockNumber} was reorged out`);
}

/** Chains that answer each question once: the refunds of a batch ask the same ones. */
export function rememberAnswers(chains: Chains): Chains {
  return new Map(
    [...chains].map(([network, chain]) => [
      network,
      {
        ...chain,
        finalizedBlock: remembered(() => chain.finalizedBlock()),
        blockHashAt: remembered((number) => chain.blockHashAt(number)),
        readSpentNonces: remembered((sender, blockHash) => chain.readSpentNonces(sender, blockHash)),
        readSignedBy: remembered((transaction) => chain.readSignedBy(transaction)),
        readTransfers: remembered((transaction, assets) => chain.readTransfers(transaction, assets)),
        readCost: remembered((transaction) => chain.readCost(transaction)),
      },
    ]),
  );
}

function remembered<Asked extends readonly (Hex | bigint | readonly Hex[] | undefined)[], T>(
  read: (...asked: Asked) => Promise<T>,
): (...asked: Asked) => Promise<T> {
  const known = new Map<string, Promise<T>>();
  return (...asked) => {
    const key = asked.join(' ');
    const answer = known.get(key) ?? read(...asked);
    known.set(key, answer);
    return answer;
  };
}

function unavailable(cause: string, network: Caip2): Refused<NoTransfers> {
  return cause === 'wrong_chain' ? refused('wrong_chain', network) : refused('chain_unavailable', cause);
}

/** A token at a payee, by the configuration. */
export type KnownToken = Pick<AcceptedToken, 'network' | 'asset' | 'symbol' | 'decimals' | 'payTo'>;

/** The payees of a network with their tokens: those of the ledger, then those of the configuration. */
export async function knownPayees(
  pool: pg.Pool,
  network: Caip2,
  accepted: readonly KnownToken[],
): Promise<KnownPayee[]> {
  return [
    // the terms of signed quotes take precedence over the configuration
    ...(await listPayees(pool, network)),
    ...accepted.filter((one) => one.network === network).map((one) => ({ ...one, pay_to: one.payTo })),
  ];
}

export function tokensOf(payees: readonly KnownPayee[]): Address[] {
  return [...new Set(payees.map(({ asset }) => asset as Address))];
}

/** The purpose of a recorded transaction, and the result of recording its cost. */
export interface TransferCost extends Omit<CostOrder, 'own'> {
  readonly answer: CostAnswer;
}

/**
 * Records what the transaction of a recorded transfer cost, if an account of the operator sent it. That is an addition: what is
 * recorded of the transfer stands, whatever the answer.
 * @param from whose tokens it moved: an account of the operator, by that record
 */
export async function recordTransferCost(
  ledger: LedgerWriter,
  chains: Chains,
  order: Omit<CostOrder, 'own'>,
  from: string,
): Promise<TransferCost> {
  const own = await ownAccounts(ledger.pool, order.network, [from]);
  return { ...order, answer: await recordCost(ledger, { ...order, own }, chains.get(order.network)) };
}

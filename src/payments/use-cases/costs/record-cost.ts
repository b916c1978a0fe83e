import type { EventData } from '../../../ledger/rules/event.ts';
import { type CostPurpose, costStream, costTerms } from '../../../base/values/transaction-cost.ts';
import { nativeSymbol } from '../../../base/values/native-coin.ts';
import { chainIdOf, type Caip2, type Hex } from '../../../base/values/primitives.ts';
import type { CostReading } from '../../peers/chain/transaction-cost.ts';
import { readLastEvent } from '../../../ledger/store/streams.ts';
import type { LedgerWriter } from '../../../ledger/store/ledger.ts';

/** What a transaction was sent for, and whose it may be. */
export interface CostOrder {
  readonly network: Caip2;
  readonly transaction: Hex;
  readonly purpose: CostPurpose;
  /** The operator's accounts: a fee that anybody else paid is not a cost of the operator. */
  readonly own: ReadonlySet<string>;
  /** Undefined if a gateway records it. */
  readonly operator: string | undefined;
}

export type CostRefusal =
  | 'network_unknown'
  | 'wrong_chain'
  | 'chain_unavailable'
  | 'no_receipt'
  | 'not_final'
  /** An account sent it that is not known as the operator's. */
  | 'foreign_payer'
  | 'superseded';

export type RecordedCost = EventData<'transaction_cost_recorded'>;

export type CostAnswer =
  /** `repeated`: it was recorded before, by this or another command or gateway. */
  | { readonly kind: 'recorded' | 'repeated'; readonly cost: RecordedCost }
  | { readonly kind: 'refused'; readonly code: CostRefusal; readonly detail?: string | undefined };

const maxTries = 5;

/** What reads the receipts of a network. */
export interface CostReader {
  readCost(transaction: Hex): Promise<CostReading>;
}

/** Records what a final transaction of the operator cost, once, also with concurrent commands; anew after a reversal. */
export async function recordCost(
  { pool, lane }: LedgerWriter,
  order: CostOrder,
  chain: CostReader | undefined,
): Promise<CostAnswer> {
  const { network, transaction } = order;
  const stream = costStream(chainIdOf(network) ?? 0, transaction);
  let cost: RecordedCost | undefined;
  for (let tries = 0; tries < maxTries; tries++) {
    const last = await readLastEvent(pool, stream);
    if (last?.type === 'transaction_cost_recorded') return { kind: 'repeated', cost: last.data };
    if (!cost) {
      if (!chain) return refused('network_unknown', network);
      const read = await chain.readCost(transaction);
      if (read.kind !== 'final') return refusalOf(read, network);
      if (!order.own.has(read.cost.payer)) return refused('foreign_payer', read.cost.payer);
      cost = costData(order, read.cost);
    }
    const { outcome } = await lane.append({
      stream,
      expect: last?.version ?? 0,
      events: [{ type: 'transaction_cost_recorded', data: cost }],
    });
    if (outcome === 'ok') return { kind: 'recorded', cost };
  }
  return refused('superseded');
}

function refusalOf(
  read: Exclude<CostReading, { kind: 'final' }>,
  network: Caip2,
): Extract<CostAnswer, { kind: 'refused' }> {
  switch (read.kind) {
    case 'absent':
      return refused('no_receipt');
    case 'not_final':
      return refused('not_final', read.reason);
    case 'unavailable':
      return read.cause === 'wrong_chain'
        ? refused('wrong_chain', network)
        : refused('chain_unavailable', read.cause);
  }
}

function refused(code: CostRefusal, detail?: string): Extract<CostAnswer, { kind: 'refused' }> {
  return { kind: 'refused', code, detail };
}

function costData(
  { network, transaction, purpose, operator }: CostOrder,
  { payer, gasUsed, gasPriceWei, l1FeeWei, block }: Extract<CostReading, { kind: 'final' }>['cost'],
): RecordedCost {
  return {
    network,
    transaction,
    purpose,
    payer,
    symbol: nativeSymbol(chainIdOf(network) ?? 0),
    gas_used: String(gasUsed),
    gas_price_wei: String(gasPriceWei),
    ...(l1FeeWei !== undefined && { l1_fee_wei: String(l1FeeWei) }),
    block_number: String(block.number),
    block_hash: block.hash,
    block_time: block.timestampSecs,
    ...(operator !== undefined && { operator }),
  };
}

export type CostReversalRefusal = 'not_recorded' | 'superseded';

export type CostReversalAnswer =
  | { readonly kind: 'reversed'; readonly cost: RecordedCost }
  | { readonly kind: 'refused'; readonly code: CostReversalRefusal };

/** Takes the record of a transaction's cost back if an operator says that it is wrong, so that the books do not have it any more and it can be recorded rightly. */
export async function reverseCost(
  { pool, lane }: LedgerWriter,
  {
    network,
    transaction,
    why,
    operator,
  }: Pick<CostOrder, 'network' | 'transaction'> & { readonly why: string; readonly operator: string },
): Promise<CostReversalAnswer> {
  const stream = costStream(chainIdOf(network) ?? 0, transaction);
  for (let tries = 0; tries < maxTries; tries++) {
    const last = await readLastEvent(pool, stream);
    if (last?.type !== 'transaction_cost_recorded') return { kind: 'refused', code: 'not_recorded' };
    const { version, data: cost } = last;
    const data = { ...costTerms(cost), why, operator };
    const events = [{ type: 'operator_cost_reversed' as const, data }];
    const { outcome } = await lane.append({ stream, expect: version, events });
    if (outcome === 'ok') return { kind: 'reversed', cost };
  }
  return { kind: 'refused', code: 'superseded' };
}

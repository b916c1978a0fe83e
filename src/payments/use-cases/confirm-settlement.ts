import type { OperatorLog } from '../../base/values/operator-log.ts';
import { expectedTransfer } from '../rules/payment.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { Settled } from '../rules/payment-progress.ts';
import { foldQuote, paymentOf } from '../rules/quote-state.ts';
import { type SettlementOutcome, settlementState } from '../rules/settlement.ts';
import type { Block, Chain } from '../peers/chain/chain.ts';
import { type FollowUp, noteFirstSearchBlock, type FinalSettlement } from '../store/follow-ups.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { findSettlement } from './find-settlement.ts';
import { recordDecision, type StartedPayment } from './record-settlement.ts';
import type { FollowUpResult } from './resolve-settlement.ts';
import type { LedgerWriter } from '../../ledger/store/ledger.ts';

export interface ConfirmationPorts extends LedgerWriter {
  readonly log: OperatorLog;
}

/** A chain, and its last final block. */
export interface Finality {
  readonly chain: Chain;
  readonly finalized: Block;
}

/** How long a node may take to see a transaction that a facilitator reported. */
const nodeDelaySecs = 15;

interface SettledPayment extends StartedPayment {
  readonly settled: Settled;
  readonly quotedAtSecs: number;
}

const done: FollowUpResult = { kind: 'done' };
const lookAgain: FollowUpResult = { kind: 'look_again' };

/** The payment that an event says is settled; undefined if that settlement does not hold any more. */
async function findSettled(
  context: ConfirmationPorts,
  { stream, seq }: Pick<FollowUp, 'stream' | 'seq'>,
): Promise<SettledPayment | undefined> {
  const { events } = await readStream(context.pool, stream);
  const event = events.find((candidate) => candidate.seq === seq);
  if (
    event?.type !== 'payment_settled' &&
    event?.type !== 'settlement_confirmed' &&
    event?.type !== 'payment_recovered'
  )
    return undefined;
  const quote = foldQuote(events);
  const known = paymentOf(quote, { ...event.data, nonce: event.data.payment_nonce });
  if (!known?.settled || known.settled.transaction !== event.data.transaction) return undefined;
  return {
    digest: stream as Hex,
    version: quote.version,
    state: settlementState(known, undefined),
    settled: known.settled,
    quotedAtSecs: quote.quote?.issued_at ?? 0,
  };
}

/** Reopens a settlement whose block was replaced. Its call is taken back unless a runner has it. */
export async function reopenReorged(
  context: ConfirmationPorts,
  proven: FinalSettlement,
): Promise<FollowUpResult> {
  const found = await findSettled(context, proven);
  if (found?.settled.proof?.blockHash !== proven.blockHash) return done;
  return takeBack(context, found, { kind: 'reorged' });
}

/**
 * Looks on the chain for a settlement that only a facilitator has reported, in whatever transaction it landed. Found:
 * `settlement_confirmed`. Neither there nor on its way: `settlement_disproved`.
 */
export async function confirmReported(
  context: ConfirmationPorts,
  followUp: FollowUp,
  finality: Finality,
): Promise<FollowUpResult> {
  const found = await findSettled(context, followUp);
  if (!found || found.settled.evidence !== 'facilitator') return done;
  const { state, settled, quotedAtSecs } = found;
  const onChain = await findSettlement(finality.chain, state.payment, [settled.transaction], quotedAtSecs);
  switch (onChain.kind) {
    case 'paid': {
      const { transaction, proof } = onChain;
      const recorded = await recordDecision(context, found, { kind: 'confirmed', transaction, proof });
      // the confirmation has its own follow-up until it is final; a reorg may free a claim that was lost
      return recorded.kind === 'recorded' ? done : lookAgain;
    }
    case 'void':
      return takeBack(context, found, { kind: 'disproved', reason: onChain.reason });
    case 'unused':
      return (await isOnItsWay(context, followUp, found, finality))
        ? lookAgain
        : takeBack(context, found, { kind: 'disproved', reason: 'not_on_chain' });
    case 'undecided':
      return lookAgain;
  }
}

/**
 * Whether the transfer may still land. It may not if the node does not know the transaction, the chain is final beyond its
 * height at the first look, and the authorization is unused there. Only the chain's own order decides: clocks differ, and a
 * lagging node reports "unused" as well.
 */
async function isOnItsWay(
  context: ConfirmationPorts,
  { seq, firstSearchBlock, ageSecs }: FollowUp,
  { state, settled }: SettledPayment,
  { chain, finalized }: Finality,
): Promise<boolean> {
  if (firstSearchBlock === undefined) {
    const latest = await chain.latestBlock();
    if (latest.kind === 'answer') await noteFirstSearchBlock(context.pool, seq, latest.block.number);
    return true;
  }
  if (ageSecs < nodeDelaySecs || finalized.number <= firstSearchBlock) return true;
  const heard = await chain.knowsTransaction(settled.transaction as Hex);
  if (heard.kind === 'unavailable' || heard.isKnown) return true;
  const used = await chain.isUsed(expectedTransfer(state.payment), finalized.hash);
  return used.kind === 'unavailable' || used.used;
}

/**
 * Opens a payment again, together with its call. If a runner has leased that, the call is kept, but not delivered again before
 * it is paid, and the recorded event is what the resolver finds the payment by.
 */
async function takeBack(
  context: ConfirmationPorts,
  found: SettledPayment,
  outcome: Extract<SettlementOutcome, { kind: 'reorged' | 'disproved' }>,
): Promise<FollowUpResult> {
  const recorded = await recordDecision(context, found, outcome);
  const { digest, state } = found;
  if (recorded.kind === 'lease_lost' && state.call.kind === 'enqueued') {
    const { callId } = state.call;
    return takeBack(context, { ...found, state: { ...state, call: { kind: 'leased', callId } } }, outcome);
  }
  if (recorded.kind !== 'recorded') return lookAgain;
  const call = state.call.kind === 'enqueued' ? 'withdrawn' : 'kept';
  context.log.error(
    { quote_digest: digest, payer: state.payment.payer, call },
    'a settlement does not hold on the chain',
  );
  return done;
}

import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { backOffMs } from '../../../base/values/back-off.ts';
import type { Hex, Caip2 } from '../../../base/values/primitives.ts';
import type { PrepaidContract, Landed, SpendEnd } from '../../peers/prepaid/prepaid-contract.ts';
import { endExposure } from '../../store/exposure.ts';
import { endPayout, type NewPayout, postponePayout, resendPayout, watchPayout } from '../../store/payouts.ts';
import { readStream, type StreamReading } from '../../../ledger/store/streams.ts';
import type { SpendContext } from '../context.ts';
import { factsIn, landedData, type SpendFacts } from './spend.ts';
import { createSpendRecorder } from './spend.ts';
import { recordCost } from '../../../payments/use-cases/costs/record-cost.ts';

export type PayingOut = Pick<SpendContext, 'pool' | 'lane' | 'log' | 'settings' | 'prepaid' | 'payoutAlert'>;

/** The state of an earned spend's payout after one attempt. */
export type PayoutOutcome =
  | { readonly kind: 'paid_out'; readonly landed: Landed }
  /** A payout transaction is under way, or in a block that can still be reorganized out. */
  | { readonly kind: 'sent'; readonly transaction: Hex; readonly isPending?: true }
  /** The payout transaction will not land. */
  | { readonly kind: 'resend'; readonly reason: string }
  /** It will never be paid out. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'retry'; readonly reason: string };

export type Accepted = Extract<RecordedEvent, { type: 'spend_accepted' }>;

interface Due extends NewPayout {
  readonly transaction?: Hex;
  readonly checks?: number;
}

/** After this many checks, about two minutes, the operator gets an alert about a transaction that does not land. */
const suspectChecks = 7;
const pauses = { firstMs: 1_000, longestMs: 60_000 };
/** By how much the chain's clock may lag ours when a spend's expiry is judged. */
const graceSecs = 60;
/** By how much the chain's clock may lag ours when logs are searched from a spend's acceptance on. */
const earlierSecs = 3_600;

/**
 * Makes one attempt at a payout and records its outcome: an end once, in the spend's stream; anything else as what the payout
 * waits for, and until when. Throws when the ledger cannot be reached.
 */
export async function advancePayout(
  context: PayingOut,
  due: Due,
  attempt: (accepted: Accepted, reading: StreamReading) => Promise<PayoutOutcome>,
): Promise<void> {
  const { pool, log } = context;
  const { stream, attempts, transaction, checks = 0 } = due;
  const reading = await readStream(pool, stream);
  const accepted = reading.events.find((event) => event.type === 'spend_accepted');
  if (!accepted) return endPayout(pool, stream, 'unknown_spend');
  const end = reading.events.find(isEnd);
  if (end) return endDue(context, stream, failureOf(end));
  const outcome = await attempt(accepted, reading);
  const fields = { chat_id: accepted.data.chat_id, amount: accepted.data.amount };
  switch (outcome.kind) {
    case 'sent':
      // its account has been debited, so the operator risks nothing any more
      if (transaction === undefined) await endExposure(pool, stream, false);
      else if (transaction !== outcome.transaction)
        log.info({ ...fields, transaction }, 'another payout transaction takes the place of this one');
      if (outcome.isPending && checks >= suspectChecks)
        await postponed(context, accepted, 'transaction_pending');
      return watchPayout(pool, stream, outcome.transaction, backOffMs(pauses, checks));
    case 'resend': {
      const { reason } = outcome;
      log.warn({ ...fields, transaction, reason }, 'a payout transaction will not land: it is sent again');
      return resendPayout(pool, stream, reason);
    }
    case 'retry': {
      const { reason } = outcome;
      log.warn({ ...fields, reason, attempts: attempts + 1 }, 'a spend was not paid out: it is tried again');
      if (reason === 'gas_too_expensive') await postponed(context, accepted, reason);
      return postponePayout(pool, stream, backOffMs(pauses, attempts), reason);
    }
    case 'paid_out':
    case 'failed':
  }
  // the chain shows the same end at the next attempt
  if (!(await recordEnd(context, stream, reading, factsIn(accepted.data), outcome)))
    return postponePayout(pool, stream, pauses.firstMs, 'version_conflict');
  if (outcome.kind === 'failed')
    log.error({ ...fields, reason: outcome.reason }, 'an earned spend is lost to the operator');
  return endDue(context, stream, outcome.kind === 'failed' ? outcome.reason : undefined);
}

function postponed(
  { payoutAlert }: PayingOut,
  { data: { network, contract, chat_id, amount } }: Accepted,
  reason: 'gas_too_expensive' | 'transaction_pending',
): Promise<void> {
  return payoutAlert({ network, contract, chat_id, amount, reason });
}

/** Ends the exposure first: once the spend is no longer due, no worker returns to it. Its costs are final with its end. */
async function endDue(context: PayingOut, stream: string, failure: string | undefined): Promise<void> {
  const { pool } = context;
  await endExposure(pool, stream, failure !== undefined);
  await recordSpendCosts(context, (await readStream(pool, stream)).events);
  await endPayout(pool, stream, failure);
}

type EndEvent = Extract<RecordedEvent, { type: 'spend_paid_out' | 'spend_failed' }>;

function isEnd(event: RecordedEvent): event is EndEvent {
  return event.type === 'spend_paid_out' || event.type === 'spend_failed';
}

function failureOf(end: EndEvent): string | undefined {
  return end.type === 'spend_failed' ? end.data.reason : undefined;
}

/** False when another process has appended to the stream: it may have recorded the end. */
async function recordEnd(
  { lane }: PayingOut,
  stream: string,
  { events }: StreamReading,
  facts: SpendFacts,
  outcome: Extract<PayoutOutcome, { kind: 'paid_out' | 'failed' }>,
): Promise<boolean> {
  const record = createSpendRecorder(lane, stream, events.length);
  if (outcome.kind === 'failed')
    return record([{ type: 'spend_failed', data: { ...facts, reason: outcome.reason } }]);
  return record([{ type: 'spend_paid_out', data: { ...facts, ...landedData(outcome.landed) } }]);
}

export const unavailable: PayoutOutcome = { kind: 'retry', reason: 'chain_unavailable' };

export function failOrRetry(isLost: boolean, reason: string): PayoutOutcome {
  return { kind: isLost ? 'failed' : 'retry', reason };
}

/** Whether a spend can no longer be collected. */
export function isExpired({ expiry }: { readonly expiry: bigint }, { nowSecs }: StreamReading): boolean {
  return BigInt(nowSecs) > expiry + BigInt(graceSecs);
}

/** The outcome of a spend that the contract reports as claimed. */
export async function outcomeOfClaimed(
  prepaid: PrepaidContract,
  authHash: Hex,
  accepted: Accepted,
): Promise<PayoutOutcome> {
  const sinceSecs = Math.floor(Date.parse(accepted.at) / 1_000) - earlierSecs;
  const end = await prepaid.findSpendEnd(authHash, sinceSecs);
  if (end.kind === 'unavailable') return unavailable;
  // the node has lost its logs, or lags behind the node that answered before
  return end.value ? outcomeOfEnd(prepaid, end.value) : { kind: 'retry', reason: 'claim_not_found' };
}

export async function outcomeOfEnd(prepaid: PrepaidContract, end: SpendEnd): Promise<PayoutOutcome> {
  const finality = await prepaid.finalityOf(end);
  if (finality.kind === 'unavailable') return { kind: 'retry', reason: 'finality_unknown' };
  if (finality.value === 'reorged') return { kind: 'retry', reason: 'claim_reorged' };
  if (end.how === 'reclaimed') return failOrRetry(finality.value === 'final', 'reclaimed');
  return finality.value === 'final'
    ? { kind: 'paid_out', landed: end }
    : { kind: 'sent', transaction: end.transaction };
}

/**
 * Records the costs of landing a spend and of paying it out, once the spend has ended: a later transaction is final, so both are. What cannot
 * be recorded now is logged for the operator, and delays nothing.
 */
async function recordSpendCosts(
  {
    pool,
    lane,
    log,
    prepaid,
    settings,
  }: Pick<SpendContext, 'pool' | 'lane' | 'log' | 'prepaid' | 'settings'>,
  events: readonly RecordedEvent[],
): Promise<void> {
  for (const event of events) {
    if (event.type !== 'spend_authorized' && event.type !== 'spend_paid_out') continue;
    const { network, transaction, operator: signedFor, chat_id } = event.data;
    if (transaction === undefined) continue;
    const purpose = event.type === 'spend_authorized' ? 'authorization' : 'claim';
    const answer = await recordCost(
      { pool, lane },
      {
        network: network as Caip2,
        transaction: transaction as Hex,
        purpose,
        own: new Set([signedFor, prepaid.operator]),
        operator: undefined,
      },
      network === settings.network ? prepaid : undefined,
    );
    if (answer.kind === 'refused' && answer.code !== 'foreign_payer')
      log.warn(
        { chat_id, network, transaction, purpose, reason: answer.code },
        'the gas of a spend was not recorded',
      );
  }
}

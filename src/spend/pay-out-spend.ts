import type { RecordedEvent } from '../domain/events/event.ts';
import { type SpendAuth, spendAuthHash } from '../domain/spend/spend-auth.ts';
import { backOffMs } from '../domain/values/back-off.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { PrepaidContract, CreditsAnswer, Landed, SpendEnd } from '../peers/prepaid/prepaid-contract.ts';
import { endExposure } from '../store/exposure.ts';
import { type DuePayout, endPayout, postponePayout, watchPayout } from '../store/payouts.ts';
import { readStream, type StreamReading } from '../store/streams.ts';
import { isThisSpend } from './authorize-spend.ts';
import type { SpendContext } from './context.ts';
import { authFromData, factsIn, landedData, type SpendFacts } from './spend.ts';
import { createSpendRecorder } from './spend-recorder.ts';

type PayingOut = Pick<SpendContext, 'pool' | 'lane' | 'log' | 'settings' | 'prepaid'>;

/** The state of an earned spend's payout after one attempt. */
type Outcome =
  | { readonly kind: 'paid_out'; readonly landed: Landed }
  /** A payout transaction landed, in a block that can still be reorganized out. */
  | { readonly kind: 'landed'; readonly transaction: Hex }
  /** It will never be paid out. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'retry'; readonly reason: string };

const pauses = { firstMs: 1_000, longestMs: 60_000 };
const waitMs = 30_000;
/** How far the chain's clock may be behind ours when a spend's expiry is judged. */
const graceSecs = 60;
/** How far the chain's clock may be behind ours when logs are searched from a spend's acceptance on. */
const earlierSecs = 3_600;

/**
 * Makes one attempt to have an earned spend paid out to its operator, and records the payout once, when its block is final.
 * A payout transaction that was reorganized out is sent again, and a failed attempt is repeated until the spend has expired;
 * then the operator has lost it, which is recorded too. Throws when the ledger cannot be reached.
 */
export async function payOutSpend(context: PayingOut, due: DuePayout): Promise<void> {
  const { pool, log } = context;
  const { stream, attempts, transaction: known } = due;
  const reading = await readStream(pool, stream);
  const accepted = reading.events.find((event) => event.type === 'spend_accepted');
  if (!accepted) return endPayout(pool, stream, 'unknown_spend');
  const end = reading.events.find(isEnd);
  if (end) return endDue(context, stream, failureOf(end));
  const outcome = await attempt(context, due, accepted, reading);
  const fields = { chat_id: accepted.data.chat_id, amount: accepted.data.amount };
  if (outcome.kind === 'landed') {
    if (known !== undefined && known !== outcome.transaction)
      log.warn({ ...fields, transaction: known }, 'payout transaction reorganized out, replaced');
    // its account has been debited, so the operator risks nothing any more
    if (known === undefined) await endExposure(pool, stream, false);
    return watchPayout(pool, stream, outcome.transaction, backOffMs(pauses, due.checks));
  }
  if (outcome.kind === 'retry') {
    const { reason } = outcome;
    log.warn({ ...fields, reason, attempts: attempts + 1 }, 'a spend was not paid out: it is tried again');
    return postponePayout(pool, stream, pauseAfter(reason, attempts), reason);
  }
  // the chain shows the same end at the next attempt
  if (!(await recordEnd(context, stream, reading, factsIn(accepted.data), outcome)))
    return postponePayout(pool, stream, pauses.firstMs, 'version_conflict');
  if (outcome.kind === 'failed')
    log.error({ ...fields, reason: outcome.reason }, 'an earned spend is lost to the operator');
  return endDue(context, stream, outcome.kind === 'failed' ? outcome.reason : undefined);
}

/** Ends the exposure first: once the spend is no longer due, no worker returns to it. */
async function endDue(
  { pool }: Pick<SpendContext, 'pool'>,
  stream: string,
  failure: string | undefined,
): Promise<void> {
  await endExposure(pool, stream, failure !== undefined);
  await endPayout(pool, stream, failure);
}

/** A transaction that may still land gets the longest pause: a second one would only cost its fee. */
function pauseAfter(reason: string, attempts: number): number {
  return reason === 'transaction_unknown' ? pauses.longestMs : backOffMs(pauses, attempts);
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
  outcome: Extract<Outcome, { kind: 'paid_out' | 'failed' }>,
): Promise<boolean> {
  const record = createSpendRecorder(lane, stream, events.length);
  if (outcome.kind === 'failed')
    return record([{ type: 'spend_failed', data: { ...facts, reason: outcome.reason } }]);
  return record([{ type: 'spend_paid_out', data: { ...facts, ...landedData(outcome.landed) } }]);
}

async function attempt(
  { prepaid, settings }: PayingOut,
  { transaction }: DuePayout,
  accepted: Extract<RecordedEvent, { type: 'spend_accepted' }>,
  reading: StreamReading,
): Promise<Outcome> {
  const { network, contract } = settings;
  const { data } = accepted;
  const auth = authFromData(data);
  const isExpired = BigInt(reading.nowSecs) > auth.expiry + BigInt(graceSecs);
  if (data.network !== network || data.contract !== contract) return failOrRetry(isExpired, 'other_contract');

  if (transaction !== undefined) {
    const landed = await prepaid.findLanded(transaction);
    if (landed.kind === 'unavailable') return unavailable;
    if (landed.value) return outcomeOf(prepaid, { how: 'claimed', ...landed.value });
  }
  const authHash = spendAuthHash(auth);
  const found = await prepaid.getSpendAuth(authHash);
  // an unreachable chain is no reason to give a spend up
  if (found.kind === 'unavailable') return unavailable;
  // a spend that was paid out to an earlier key of the operator is paid out
  if (auth.operator !== prepaid.operator && !found.value?.claimed)
    return failOrRetry(isExpired, 'other_operator');
  if (!found.value) return landAgain(prepaid, settings, auth, reading, isExpired);
  if (!isThisSpend(auth, found.value))
    return failOrRetry(isExpired || (await isNonceUsed(prepaid, auth)), 'other_spend');
  if (found.value.claimed) {
    const sinceSecs = Math.floor(Date.parse(accepted.at) / 1_000) - earlierSecs;
    const end = await prepaid.findSpendEnd(authHash, sinceSecs);
    if (end.kind === 'unavailable') return unavailable;
    // the node has lost its logs, or lags behind the node that answered before
    return end.value ? outcomeOf(prepaid, end.value) : { kind: 'retry', reason: 'claim_not_found' };
  }
  const answer = await prepaid.claimPayment(authHash, settings.recipient ?? prepaid.operator, waitMs);
  if (answer.kind === 'landed') return { kind: 'landed', transaction: answer.transaction };
  const reason = reasonOf(answer);
  // another payout transaction may have landed meanwhile: the next attempt finds it
  const mayBePaid = reason === 'already_claimed' || ('transaction' in answer && answer.transaction);
  const isLost = answer.kind === 'reverted' && !mayBePaid && (isExpired || reason === 'spend_expired');
  return failOrRetry(isLost, reason);
}

/** The spend has not landed, or its block was reorganized out: it is landed again while its account allows that. */
async function landAgain(
  prepaid: PrepaidContract,
  settings: SpendContext['settings'],
  auth: SpendAuth,
  reading: StreamReading,
  isExpired: boolean,
): Promise<Outcome> {
  if (isLanding(settings, reading)) return { kind: 'retry', reason: 'landing' };
  const answer = await prepaid.authorizeSpend(auth, waitMs);
  if (answer.kind === 'landed') return { kind: 'retry', reason: 'landed_again' };
  const isLost = answer.kind === 'reverted' && (isExpired || (await isNonceUsed(prepaid, auth)));
  const wasAuthorized = reading.events.some(({ type }) => type === 'spend_authorized');
  return failOrRetry(isLost, isLost && wasAuthorized ? 'authorization_reorged' : reasonOf(answer));
}

function failOrRetry(isLost: boolean, reason: string): Outcome {
  return { kind: isLost ? 'failed' : 'retry', reason };
}

const unavailable: Outcome = { kind: 'retry', reason: 'chain_unavailable' };

async function outcomeOf(prepaid: PrepaidContract, end: SpendEnd): Promise<Outcome> {
  const finality = await prepaid.finalityOf(end);
  if (finality.kind === 'unavailable') return { kind: 'retry', reason: 'finality_unknown' };
  if (finality.value === 'reorged') return { kind: 'retry', reason: 'claim_reorged' };
  if (end.how === 'reclaimed') return failOrRetry(finality.value === 'final', 'reclaimed');
  return finality.value === 'final'
    ? { kind: 'paid_out', landed: end }
    : { kind: 'landed', transaction: end.transaction };
}

/**
 * Whether the account has used the nonce for another spend, in a final block; false when the node cannot tell. The spend itself
 * may have landed since the last look-up, since anyone can land it.
 */
async function isNonceUsed(prepaid: PrepaidContract, auth: SpendAuth): Promise<boolean> {
  const finalized = await prepaid.finalizedBlock();
  if (finalized.kind === 'unavailable') return false;
  const at = { blockHash: finalized.block.hash, requireCanonical: true } as const;
  const account = await prepaid.getAccount(auth.commitment, at);
  if (account.kind === 'unavailable' || (account.value?.nonce ?? 0n) <= auth.nonce) return false;
  const spend = await prepaid.getSpendAuth(spendAuthHash(auth), at);
  return spend.kind === 'answer' && !(spend.value && isThisSpend(auth, spend.value));
}

/** Whether the process that answered may still be landing the spend. */
function isLanding(
  { exposure, authorizeTimeoutMs, nonceWaitMs }: SpendContext['settings'],
  { events, nowSecs }: StreamReading,
): boolean {
  if (exposure === 0n || events.some(({ type }) => type === 'spend_authorized')) return false;
  const since = Date.parse(events.at(-1)?.at ?? '');
  // an event's time may be ahead of the clock for as long as the clock once was
  return Math.abs(nowSecs * 1_000 - since) < authorizeTimeoutMs + nonceWaitMs;
}

function reasonOf(answer: Exclude<CreditsAnswer, { kind: 'landed' }>): string {
  switch (answer.kind) {
    case 'reverted':
      return answer.reason;
    case 'unknown':
      return 'transaction_unknown';
    case 'not_sent':
      return 'not_sent';
    case 'unavailable':
      return 'chain_unavailable';
  }
}

import type { EventData, RecordedEvent } from '../domain/events/event.ts';
import { type SpendAuth, spendAuthHash } from '../domain/spend/spend-auth.ts';
import { backOffMs } from '../domain/values/back-off.ts';
import type { Hex } from '../domain/values/primitives.ts';
import type { PrepaidContract, CreditsAnswer, Landed, SpendEnd } from '../peers/prepaid/prepaid-contract.ts';
import { type DueSpend, endExposure, endSpend, postponeSpend, watchClaim } from '../store/spend.ts';
import { readStream, type StreamReading } from '../store/streams.ts';
import { isThisSpend } from './authorize-spend.ts';
import type { ChatContext } from '../chat/context.ts';
import { authFromData, recorderOf, type SpendFacts, type Spending } from './spend.ts';

type Claiming = Pick<ChatContext, 'pool' | 'lane' | 'log'>;

/** What came of one look at an earned spend. */
type Outcome =
  | { readonly kind: 'paid'; readonly landed: Landed }
  /** It was claimed, in a block that can still go. */
  | { readonly kind: 'claimed'; readonly transaction: Hex }
  /** It will never be paid. */
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'later'; readonly reason: string };

const pauses = { firstMs: 1_000, longestMs: 60_000 };
const waitMs = 30_000;
/** Beyond a spend's expiry, in which the chain's clock may be behind ours. */
const graceSecs = 60;
/** Before a spend was accepted, in which the chain's clock may be behind ours. */
const earlierSecs = 3_600;

/**
 * Has an earned spend paid to its operator, and writes that down once, when it is final. A claim that goes with its block is
 * sent again, and what does not succeed tried again, until the spend has expired; then its operator has lost it, which is
 * written down too. Throws where the ledger cannot be reached.
 */
export async function payOutSpend(context: Claiming, spending: Spending, due: DueSpend): Promise<void> {
  const { stream, attempts } = due;
  const reading = await readStream(context.pool, stream);
  const accepted = reading.events.find((event) => event.type === 'spend_accepted');
  if (!accepted) return endSpend(context.pool, stream, 'unknown_spend');
  const end = reading.events.find(isEnd);
  if (end) return endDue(context, stream, failureOf(end));
  const outcome = await lookAfter(spending, due, accepted, reading);
  const told = { chat_id: accepted.data.chat_id, amount: accepted.data.amount };
  if (outcome.kind === 'claimed') {
    if (due.claim !== undefined && due.claim !== outcome.transaction)
      context.log.warn(
        { ...told, transaction: due.claim },
        'a claim went with its block: there is another one',
      );
    // its account has been debited: nothing of it is under way there
    if (due.claim === undefined) await endExposure(context.pool, stream, false);
    return watchClaim(context.pool, stream, outcome.transaction, backOffMs(pauses, due.looks));
  }
  if (outcome.kind === 'later') {
    const pauseMs = pauseAfter(outcome.reason, attempts);
    const fields = { ...told, reason: outcome.reason, attempts: attempts + 1 };
    context.log.warn(fields, 'a spend could not be claimed: it is tried again');
    return postponeSpend(context.pool, stream, pauseMs, outcome.reason);
  }
  // what the chain says of it is still there at the next look
  if (!(await recordEnd(context, stream, reading, factsIn(accepted.data), outcome)))
    return postponeSpend(context.pool, stream, pauses.firstMs, 'story_moved');
  if (outcome.kind === 'failed')
    context.log.error({ ...told, reason: outcome.reason }, 'a spend was earned and is lost to the operator');
  return endDue(context, stream, outcome.kind === 'failed' ? outcome.reason : undefined);
}

/** The exposure first: nobody comes back for it once the spend is due no more. */
async function endDue({ pool }: Claiming, stream: string, failure: string | undefined): Promise<void> {
  await endExposure(pool, stream, failure !== undefined);
  await endSpend(pool, stream, failure);
}

/** A transaction that may land yet is given time: another one beside it would cost its fee for nothing. */
function pauseAfter(reason: string, attempts: number): number {
  const isUnderWay = reason === 'transaction_unknown';
  return isUnderWay ? pauses.longestMs : backOffMs(pauses, attempts);
}

function isEnd(
  event: RecordedEvent,
): event is Extract<RecordedEvent, { type: 'spend_paid_out' | 'spend_failed' }> {
  return event.type === 'spend_paid_out' || event.type === 'spend_failed';
}

function failureOf(end: Extract<RecordedEvent, { type: 'spend_paid_out' | 'spend_failed' }>) {
  return end.type === 'spend_failed' ? end.data.reason : undefined;
}

/** False where the story has gone on meanwhile: it may have been ended by somebody else, too. */
async function recordEnd(
  { lane }: Claiming,
  stream: string,
  { events }: StreamReading,
  facts: SpendFacts,
  outcome: Extract<Outcome, { kind: 'paid' | 'failed' }>,
): Promise<boolean> {
  const record = recorderOf(lane, stream, events.length);
  if (outcome.kind === 'failed')
    return record([{ type: 'spend_failed', data: { ...facts, reason: outcome.reason } }]);
  const { landed } = outcome;
  const onChain = {
    transaction: landed.transaction,
    block_number: String(landed.block.number),
    block_hash: landed.block.hash,
  };
  return record([{ type: 'spend_paid_out', data: { ...facts, ...onChain } }]);
}

function factsIn(data: EventData<'spend_accepted'>): SpendFacts {
  const { chat_id, network, contract, commitment, nonce, auth_hash, operator, amount } = data;
  return { chat_id, network, contract, commitment, nonce, auth_hash, operator, amount };
}

async function lookAfter(
  { prepaid, settings }: Spending,
  { claim }: DueSpend,
  { data, at }: Extract<RecordedEvent, { type: 'spend_accepted' }>,
  reading: StreamReading,
): Promise<Outcome> {
  const { network, contract } = settings;
  const auth = authFromData(data);
  const isOver = BigInt(reading.nowSecs) > auth.expiry + BigInt(graceSecs);
  if (data.network !== network || data.contract !== contract) return lostOrLater(isOver, 'other_contract');

  if (claim !== undefined) {
    const landed = await prepaid.findLanded(claim);
    if (landed.kind === 'unavailable') return unavailable;
    if (landed.value) return outcomeOf(prepaid, { how: 'claimed', ...landed.value });
  }
  const authHash = spendAuthHash(auth);
  const found = await prepaid.getSpendAuth(authHash);
  // never given up for a chain that cannot be asked
  if (found.kind === 'unavailable') return unavailable;
  // what another key was paid already, it was paid
  if (auth.operator !== prepaid.operator && !found.value?.claimed)
    return lostOrLater(isOver, 'other_operator');
  if (!found.value && isLanding(settings, reading)) return { kind: 'later', reason: 'landing' };
  if (!found.value) {
    // it was left to us, or the block that held it is gone: it is landed again, if its account still can
    const answer = await prepaid.authorizeSpend(auth, waitMs);
    if (answer.kind === 'landed') return { kind: 'later', reason: 'landed_again' };
    const isLost = answer.kind === 'reverted' && (isOver || (await isNonceUsed(prepaid, auth)));
    const wasAuthorized = reading.events.some(({ type }) => type === 'spend_authorized');
    return lostOrLater(isLost, isLost && wasAuthorized ? 'authorization_reorged' : reasonOf(answer));
  }
  if (!isThisSpend(auth, found.value))
    return lostOrLater(isOver || (await isNonceUsed(prepaid, auth)), 'other_spend');
  if (found.value.claimed) {
    const end = await prepaid.findSpendEnd(authHash, Math.floor(Date.parse(at) / 1_000) - earlierSecs);
    if (end.kind === 'unavailable') return unavailable;
    // the node has lost its logs, or lags behind the one that was asked before
    return end.value ? outcomeOf(prepaid, end.value) : { kind: 'later', reason: 'claim_not_found' };
  }
  const answer = await prepaid.claimPayment(authHash, settings.recipient ?? prepaid.operator, waitMs);
  if (answer.kind === 'landed') return { kind: 'claimed', transaction: answer.transaction };
  const reason = reasonOf(answer);
  // another claim of it may have landed since the look: the next one tells
  const mayBePaid = reason === 'already_claimed' || ('transaction' in answer && answer.transaction);
  const isLost = answer.kind === 'reverted' && !mayBePaid && (isOver || reason === 'spend_expired');
  return lostOrLater(isLost, reason);
}

function lostOrLater(isLost: boolean, reason: string): Outcome {
  return { kind: isLost ? 'failed' : 'later', reason };
}

const unavailable: Outcome = { kind: 'later', reason: 'chain_unavailable' };

async function outcomeOf(prepaid: PrepaidContract, end: SpendEnd): Promise<Outcome> {
  const finality = await prepaid.finalityOf(end);
  if (finality.kind === 'unavailable') return { kind: 'later', reason: 'finality_unknown' };
  if (finality.value === 'gone') return { kind: 'later', reason: 'claim_reorged' };
  if (end.how === 'reclaimed') return lostOrLater(finality.value === 'final', 'reclaimed');
  return finality.value === 'final'
    ? { kind: 'paid', landed: end }
    : { kind: 'claimed', transaction: end.transaction };
}

/**
 * Whether its account has used its nonce for something else, in a block that stays. Not, where the node cannot tell. The spend
 * itself may have landed since it was looked for: anyone can land it.
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

/** Whether the process that has answered may still be landing it. */
function isLanding(
  { exposure, authorizeTimeoutMs, nonceWaitMs }: Spending['settings'],
  { events, nowSecs }: StreamReading,
): boolean {
  if (exposure === 0n || events.some(({ type }) => type === 'spend_authorized')) return false;
  const since = Date.parse(events.at(-1)?.at ?? '');
  return nowSecs * 1_000 < since + authorizeTimeoutMs + nonceWaitMs;
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

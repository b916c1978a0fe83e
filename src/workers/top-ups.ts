import type { Config, TopUpConfig } from '../config/config.ts';
import { currencyPerToken } from '../config/top-ups.ts';
import { creditText } from '../domain/credit/price.ts';
import { jobKey } from '../domain/payments/job.ts';
import { foldQuote, type PaymentState, paymentOf, type QuoteState } from '../domain/payments/quote-state.ts';
import { topUpMicros } from '../domain/credit/top-up.ts';
import type { JobsContext } from '../jobs/context.ts';
import { type AttemptOutcome, isExhausted, recordAttempt } from '../jobs/record-attempt.ts';
import { hasToppedUp, type PaidTopUp, takeBackTopUp, topUp } from '../top-ups/top-up.ts';
import type { CallLease } from '../store/calls.ts';
import { endFollowUps, type FollowUp, takeFollowUps } from '../store/follow-ups.ts';
import { readStream } from '../store/streams.ts';
import { collectTopUpReversals, leaseTopUps } from '../store/top-ups.ts';
import { type Loop, startLoop } from './loop.ts';

const pollMs = 500;
const atOnce = 16;
const eventsAtOnce = 5_000;
/** Longer than one call can take: a few statements and two appends. */
const leaseSecs = 60;
/** Until a payment is looked at again that does not stand for now. */
const openPauseMs = 5_000;

/** What topping up works with. */
export interface TopUps extends Pick<
  JobsContext,
  'pool' | 'db' | 'lane' | 'log' | 'config' | 'onCallReleased'
> {
  readonly topUps: readonly TopUpConfig[];
  readonly currency: string;
  readonly confirm: () => NonNullable<Config['jobs']>['confirm'];
}

/**
 * Serves the calls of top-ups from the outbox, in whichever process comes first: each gives the payer's account credit, and
 * is completed with what it gave. Takes credit back whose payment did not last.
 */
export function startTopUps(work: TopUps): Loop {
  const serve = async (): Promise<boolean> => {
    const asked = { max: atOnce, leaseSecs, isProven: work.confirm() !== 'never' };
    const calls = await leaseTopUps(work.pool, work.topUps, asked);
    await Promise.all(calls.map((call) => serveGuarded(work, call)));
    return calls.length === atOnce;
  };
  const takeBack = async (): Promise<boolean> => {
    const read = await collectTopUpReversals(work.pool, eventsAtOnce);
    const due = await takeFollowUps(work.pool, 'reverse_top_up', undefined, atOnce);
    const done = await Promise.all(due.map((followUp) => undoGuarded(work, followUp)));
    await endFollowUps(work.pool, 'reverse_top_up', done.flat());
    return read === eventsAtOnce || due.length === atOnce;
  };
  return startLoop(
    async () => {
      const isMore = [await serve(), await takeBack()];
      return isMore.includes(true);
    },
    { pollMs, log: work.log, failureMessage: 'due top-ups could not be read' },
  );
}

async function serveGuarded(work: TopUps, call: CallLease): Promise<void> {
  try {
    await serveTopUp(work, call);
  } catch (error) {
    work.log.error({ err: error, call_id: call.callId }, 'a top-up could not be given: it is tried again');
    // where the ledger is away as well, its lease runs out
    await retry(work, call).catch(() => {});
  }
}

/** Credit that is there is not given up on: its payment would be owed back as well. */
async function retry(work: TopUps, call: CallLease): Promise<void> {
  if (await hasToppedUp(work, call.callId)) return giveBack(work, call);
  await recordAttempt(work, call, { kind: 'retry', reason: 'credit_unavailable' }, true);
}

/** Its place in the ledger where nothing is left to do; it comes back by itself where something is. */
async function undoGuarded(work: TopUps, followUp: FollowUp): Promise<number[]> {
  try {
    await undo(work, followUp);
    return [followUp.seq];
  } catch (error) {
    work.log.error({ err: error, seq: followUp.seq }, 'credit could not be taken back: it is tried again');
    return [];
  }
}

/** Brings one leased call to its end, or gives it back. The lease is the fence, and the call's name makes the credit one. */
async function serveTopUp(work: TopUps, call: CallLease): Promise<void> {
  if (isExhausted(work, call) && !(await hasToppedUp(work, call.callId)))
    return end(work, call, { kind: 'dead', reason: 'attempts_exhausted' });
  const before = await look(work, call);
  if (!before || before.standing === 'failed') return endUnpaid(work, call, before?.reason);
  if (before.standing === 'open') return giveBack(work, call);
  const given = await topUp(work, before.paid, before.worthMicros);
  if (!given) return end(work, call, { kind: 'dead', reason: 'credit_refused' });
  // credit that came after its payment's end would be nobody's to take back: so it is looked at again
  const after = await look(work, call);
  if (after?.standing === 'failed') return endUnpaid(work, call, after.reason);
  if (after?.standing !== 'paid') return giveBack(work, call);
  const result = {
    account: given.account,
    credited: creditText(given.creditedMicros),
    balance: creditText(given.balanceMicros),
    currency: work.currency,
  };
  return end(work, call, {
    kind: 'completed',
    contentType: 'application/json',
    result: Buffer.from(JSON.stringify(result)),
    resultOmitted: false,
  });
}

type Look =
  | { readonly standing: 'paid'; readonly paid: PaidTopUp; readonly worthMicros: bigint }
  /** Its payment is being looked for, again or for proof. */
  | { readonly standing: 'open' }
  /** Its payment will never come, was given back, or is to be. */
  | { readonly standing: 'failed'; readonly reason: 'settlement_failed' | 'refunded' | 'dead_lettered' };

/** How the payment of a call stands in the ledger now; undefined where no payment has it. */
async function look(work: TopUps, { callId, quoteDigest }: CallLease): Promise<Look | undefined> {
  const story = foldQuote((await readStream(work.pool, quoteDigest)).events);
  const known = story.payments.find(({ call }) => call?.callId === callId);
  const job = topUpOf(work, story);
  if (!known || !job) return undefined;
  if (known.status === 'settlement_failed') return { standing: 'failed', reason: known.status };
  if (known.refunded) return { standing: 'failed', reason: 'refunded' };
  // by another process, when this one was taken for dead: it is owed back
  if (known.call?.status === 'dead_lettered') return { standing: 'failed', reason: 'dead_lettered' };
  if (known.status !== 'settled' || !isBelieved(work, known)) return { standing: 'open' };
  const { network, asset, symbol, decimals, amount: atoms, payer } = known.payment;
  const paid = { call_id: callId, quote_digest: quoteDigest, network, asset, symbol, decimals, atoms, payer };
  const worthMicros = topUpMicros(BigInt(atoms), decimals, currencyPerToken(job, symbol));
  return { standing: 'paid', paid, worthMicros };
}

function topUpOf({ topUps }: TopUps, { quote }: QuoteState): TopUpConfig | undefined {
  const key = quote && jobKey({ serviceId: quote.service_id, jobIndex: quote.job_index });
  return topUps.find((job) => jobKey(job) === key);
}

function isBelieved({ confirm }: TopUps, { settled }: PaymentState): boolean {
  return confirm() === 'never' || (settled !== undefined && settled.evidence !== 'facilitator');
}

async function endUnpaid(work: TopUps, call: CallLease, reason = 'settlement_failed'): Promise<void> {
  await takeBackTopUp(work, { call_id: call.callId, quote_digest: call.quoteDigest });
  await end(work, call, { kind: 'dead', reason });
}

async function end(work: TopUps, call: CallLease, outcome: AttemptOutcome): Promise<void> {
  const recorded = await recordAttempt(work, call, outcome, true);
  const facts = { quote_digest: call.quoteDigest, call_id: call.callId, attempt: call.attempt };
  if (recorded.kind === 'lease_lost')
    work.log.warn(facts, 'lease lost: the attempt of its new holder counts');
  else if (outcome.kind === 'completed') work.log.info(facts, 'credit topped up');
  else work.log.error({ ...facts, outcome: outcome.kind }, 'a top-up was not given');
}

/** It costs no attempt, and is nothing that anybody has to know of. */
async function giveBack(work: TopUps, { quoteDigest, callId, leaseId }: CallLease): Promise<void> {
  const call = { op: 'return_lease', callId, leaseId, delayMs: openPauseMs } as const;
  await work.lane.append({ stream: quoteDigest, events: [], call }, { urgent: true });
}

/** A payment failed after it had been settled, or was given back: the credit that it has bought, if it has, goes back. */
async function undo(work: TopUps, { stream, seq }: FollowUp): Promise<void> {
  const { events } = await readStream(work.pool, stream);
  const told = events.find((event) => event.seq === seq);
  if (told?.type !== 'settlement_failed' && told?.type !== 'refunded') return;
  const known = paymentOf(foldQuote(events), { ...told.data, nonce: told.data.payment_nonce });
  const isOver = known?.status === 'settlement_failed' || known?.refunded !== undefined;
  if (!known?.call || !isOver) return;
  await takeBackTopUp(work, { call_id: known.call.callId, quote_digest: stream });
}

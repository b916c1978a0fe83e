import type { Config, TopUpConfig } from '../../base/config/config.ts';
import { canContractSignIn } from '../../base/config/identity.ts';
import { creditText } from '../../base/values/price.ts';
import { readTopUpOrder } from '../../base/values/top-up-order.ts';
import { refundedAtoms } from '../../payments/rules/payment-progress.ts';
import { foldQuote, type PaymentState, paymentOf } from '../../payments/rules/quote-state.ts';
import { isSignedByPayer, paymentFromData } from '../../payments/rules/payment.ts';
import { creditOf } from '../../payments/rules/quote.ts';
import { chainIdOf } from '../../base/values/primitives.ts';
import {
  type AttemptOutcome,
  isExhausted,
  type LoggedPorts,
  recordAttempt,
  tooOld,
} from '../../calls/use-cases/record-attempt.ts';
import {
  type Beneficiary,
  hasToppedUp,
  type PaidTopUp,
  reverseTopUp,
  topUp,
} from '../use-cases/top-ups/top-up.ts';
import type { CallLease } from '../../calls/store/calls.ts';
import { endFollowUps, type FollowUp, takeFollowUps } from '../../payments/store/follow-ups.ts';
import { readStream } from '../../ledger/store/streams.ts';
import { collectTopUpReversals, leaseTopUps, type TopUpLease } from '../../accounts/store/top-ups.ts';
import { type Loop, startLoop } from '../../ledger/workers/loop.ts';

const pollMs = 500;
const atOnce = 16;
const eventsAtOnce = 5_000;
/** Longer than one call can take: a few statements and two appends. */
const leaseSecs = 60;
/** Until a call whose payment's outcome is open is leased again. */
const openPauseMs = 5_000;

/** What the top-up worker works with. */
export interface TopUps extends LoggedPorts {
  readonly topUps: readonly TopUpConfig[];
  readonly currency: string;
  readonly confirm: () => NonNullable<Config['jobs']>['confirm'];
}

/**
 * Serves the calls of top-ups from the outbox, each by one process at a time: credits the payer's account, and completes the
 * call with the result. Reverses credit whose payment did not last.
 */
export function startTopUps(work: TopUps): Loop {
  const serve = async (): Promise<boolean> => {
    const { maxCallAgeSecs: maxAgeSecs } = work.config.delivery;
    const asked = { max: atOnce, leaseSecs, isProven: work.confirm() !== 'never', maxAgeSecs };
    const calls = await leaseTopUps(work.pool, work.topUps, asked);
    await Promise.all(calls.map((call) => serveGuarded(work, call)));
    return calls.length === atOnce;
  };
  const reverse = async (): Promise<boolean> => {
    const read = await collectTopUpReversals(work.pool, eventsAtOnce);
    const due = await takeFollowUps(work.pool, 'reverse_top_up', undefined, atOnce);
    const done = await Promise.all(due.map((followUp) => reverseGuarded(work, followUp)));
    await endFollowUps(work.pool, 'reverse_top_up', done.flat());
    return read === eventsAtOnce || due.length === atOnce;
  };
  return startLoop(
    async () => {
      const isMore = [await serve(), await reverse()];
      return isMore.includes(true);
    },
    { pollMs, log: work.log, failureMessage: 'due top-ups could not be read' },
  );
}

async function serveGuarded(work: TopUps, call: TopUpLease): Promise<void> {
  try {
    await serveTopUp(work, call);
  } catch (error) {
    work.log.error({ err: error, call_id: call.callId }, 'a top-up failed: it is tried again');
    // when the ledger cannot be reached either, the lease expires
    await retry(work, call).catch(() => {});
  }
}

/** A call whose credit was given never becomes a dead letter: its payment would be due as a refund too. */
async function retry(work: TopUps, call: CallLease): Promise<void> {
  if (await hasToppedUp(work, call.callId)) return giveBack(work, call);
  return end(work, call, { kind: 'retry', reason: 'credit_unavailable' });
}

/** Its sequence number when it is done; a follow-up that failed is due again when its lease expires. */
async function reverseGuarded(work: TopUps, followUp: FollowUp): Promise<number[]> {
  try {
    await reverseFor(work, followUp);
    return [followUp.seq];
  } catch (error) {
    work.log.error({ err: error, seq: followUp.seq }, 'a top-up could not be reversed: it is tried again');
    return [];
  }
}

/** Serves one leased call, or gives it back. The lease's fencing token and the call's idempotency key allow the credit once. */
async function serveTopUp(work: TopUps, call: TopUpLease): Promise<void> {
  const isOver = call.isTooOld || isExhausted(work, call);
  if (isOver && !(await hasToppedUp(work, call.callId)))
    return end(work, call, { kind: 'dead', reason: call.isTooOld ? tooOld : 'attempts_exhausted' });
  const before = await look(work, call);
  if (!before || before.standing === 'failed') return endUnpaid(work, call, before?.reason);
  if (before.standing === 'open') return giveBack(work, call);
  const given = await topUp(work, before.paid, before.creditMicros, before.beneficiary);
  if (given.kind === 'refused') return end(work, call, { kind: 'dead', reason: 'credit_refused' });
  // the payment may have failed while its credit was given: nothing else would reverse that credit
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
  | {
      readonly standing: 'paid';
      readonly paid: PaidTopUp;
      readonly creditMicros: bigint;
      readonly beneficiary: Beneficiary;
    }
  /** The payment's outcome is open, or not yet confirmed on the chain. */
  | { readonly standing: 'open' }
  /** The payment failed, was refunded, is due as a refund, or bought no credit by its quote. */
  | {
      readonly standing: 'failed';
      readonly reason:
        | 'settlement_failed'
        | 'refunded'
        | 'dead_lettered'
        | 'quote_without_credit'
        | 'contract_wallet_of_another_chain';
    };

/** The state of a call's payment in the ledger; undefined when no payment has this call. */
async function look(work: TopUps, { callId, stream: quoteDigest }: CallLease): Promise<Look | undefined> {
  const state = foldQuote((await readStream(work.pool, quoteDigest)).events);
  const known = state.payment;
  if (known?.call?.callId !== callId || !state.quote) return undefined;
  if (known.status === 'settlement_failed') return { standing: 'failed', reason: known.status };
  if (known.refunds.length > 0) return { standing: 'failed', reason: 'refunded' };
  // another process gave the call up, so its payment is due as a refund
  if (known.call?.status === 'dead_lettered') return { standing: 'failed', reason: 'dead_lettered' };
  if (known.status !== 'settled' || !isConfirmed(work, known)) return { standing: 'open' };
  const { network, asset, symbol, decimals, amount: atoms, payer } = known.payment;
  const bought = { network, asset, symbol, decimals, atoms, payer, currency: work.currency };
  const paid = { call_id: callId, quote_digest: quoteDigest, ...bought };
  const creditMicros = creditOf(state.quote, known.payment);
  // issued by a gateway that does not sell credit for this job
  if (creditMicros === undefined) return { standing: 'failed', reason: 'quote_without_credit' };
  const order = readTopUpOrder(known.topUpOrder ?? '');
  if (order) return { standing: 'paid', paid, creditMicros, beneficiary: order };
  const contractOn = contractChainOf(known);
  if (contractOn !== undefined && !canContractSignIn(work.config.identity, contractOn))
    return { standing: 'failed', reason: 'contract_wallet_of_another_chain' };
  return { standing: 'paid', paid, creditMicros, beneficiary: { contractOn } };
}

/** The chain of a payer that is a contract; undefined if a key has signed. */
function contractChainOf({ payment }: PaymentState): number | undefined {
  const signed = paymentFromData(payment);
  return isSignedByPayer(signed) ? undefined : chainIdOf(signed.network);
}

function isConfirmed({ confirm }: TopUps, { settled }: PaymentState): boolean {
  return confirm() === 'never' || (settled !== undefined && settled.evidence !== 'facilitator');
}

async function endUnpaid(work: TopUps, call: CallLease, reason = 'settlement_failed'): Promise<void> {
  await reverseTopUp(work, { call_id: call.callId, quote_digest: call.stream });
  await end(work, call, { kind: 'dead', reason });
}

async function end(work: TopUps, call: CallLease, outcome: AttemptOutcome): Promise<void> {
  const recorded = await recordAttempt(work, call, outcome, { isFirstNews: true, runner: undefined });
  const facts = { quote_digest: call.stream, call_id: call.callId, attempt: call.attempt };
  if (recorded.kind === 'lease_lost')
    work.log.warn(facts, 'lease lost: the attempt of its new holder counts');
  else if (outcome.kind === 'completed') work.log.info(facts, 'credit topped up');
  else if (recorded.deadReason !== undefined)
    work.log.error(
      { ...facts, reason: recorded.deadReason },
      'dead letter: the call is not delivered any more, and its refund is due',
    );
}

/** Costs no attempt and records no event. */
async function giveBack(work: TopUps, { stream, callId, leaseId }: CallLease): Promise<void> {
  const call = { op: 'return_lease', callId, leaseId, delayMs: openPauseMs } as const;
  await work.lane.append({ stream, events: [], call }, { urgent: true });
}

/** Reverses the credit that a payment bought which failed after settlement, or in proportion if it was refunded. */
async function reverseFor(work: TopUps, { stream, seq }: FollowUp): Promise<void> {
  const { events } = await readStream(work.pool, stream);
  const cause = events.find((event) => event.seq === seq);
  if (cause?.type !== 'settlement_failed' && cause?.type !== 'refunded') return;
  const known = paymentOf(foldQuote(events), { ...cause.data, nonce: cause.data.payment_nonce });
  const isFailed = known?.status === 'settlement_failed';
  if (!known?.call || !(isFailed || known.refunds.length > 0)) return;
  const of = { call_id: known.call.callId, quote_digest: stream };
  await reverseTopUp(work, of, isFailed ? undefined : refundedAtoms(known));
}

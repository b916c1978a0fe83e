import { isUpto } from '../../support/upto.ts';
import type { Records } from '../records.ts';
import type { RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

/** Each transfer has one call and each call one transfer, and the ledger names the log that paid. */
export function* moneyViolations(
  transfers: readonly Landed[],
  payments: ReadonlyMap<string, RecordedPayment>,
  records: Records,
  { recovered, believesLies }: { recovered: ReadonlySet<string>; believesLies: boolean },
): Generator<Violation> {
  const landed = new Map(transfers.map((transfer) => [transfer.key, transfer]));
  for (const { key, transaction } of transfers) {
    const calls = payments.get(key)?.calls ?? [];
    const words = `${key}, paid in ${transaction}`;
    if (calls.length === 0 && !recovered.has(key)) {
      const isStarted = payments.has(key) ? 'was started' : 'was never started';
      yield { kind: 'transfer_without_call', words: `${words}: no call; the payment ${isStarted}` };
    }
    if (calls.length > 0 && recovered.has(key))
      yield {
        kind: 'two_calls_for_one_transfer',
        words: `${words}: call ${calls.join(', ')}, and a refund is due`,
      };
    if (calls.length > 1) {
      yield { kind: 'two_calls_for_one_transfer', words: `${words}: calls ${calls.join(', ')}` };
    }
  }
  for (const payment of payments.values()) {
    const transfer = landed.get(payment.key);
    const isExcused = payment.isReorgedOut || (believesLies && isExcusedByWord(payment, records));
    if (!transfer && payment.calls.length > 0 && !isExcused) {
      yield { kind: 'call_without_transfer', words: `${payment.key}: call ${payment.calls.join(', ')}` };
    }
    if (transfer) yield* evidenceViolations(payment, transfer);
    else if (!records.validated.has(payment.key) && !records.reorged.has(payment.key))
      yield { kind: 'started_though_invalid', words: `${payment.key}: never called valid, and never used` };
  }
  yield* credentialViolations(payments);
}

/**
 * While the chain cannot be reached, the gateway takes the facilitator's answer: a lie, or true until a reorg removed the block. A
 * call may go out meanwhile. A log that the ledger names as proof is not excused by that,
 * nor is a payment by upto, which the chain alone can show.
 */
export function isExcusedByWord({ key, settled }: RecordedPayment, records: Records): boolean {
  const one = records.signed.get(key);
  if (one && isUpto(one.payment)) return false;
  const isUntrue = records.lies.has(key) || records.reorged.has(key);
  return isUntrue && settled.every(({ data }) => data.log_index === undefined);
}

function* evidenceViolations({ key, settled }: RecordedPayment, transfer: Landed): Generator<Violation> {
  for (const { type, data } of settled) {
    if (data.log_index === undefined) continue;
    if (data.transaction === transfer.transaction && data.log_index === transfer.logIndex) continue;
    const words = `${key}: ${type} names ${data.transaction}/${data.log_index}, but ${transfer.transaction}/${transfer.logIndex} paid`;
    yield { kind: 'wrong_evidence', words };
  }
}

/** A delegated caller's nonce buys one call, and so does a payment id. */
function* credentialViolations(payments: ReadonlyMap<string, RecordedPayment>): Generator<Violation> {
  yield* usedTwice(payments, 'nonce_used_twice', ({ callerNonce }) => callerNonce);
  yield* usedTwice(payments, 'payment_id_used_twice', ({ paymentId }) => paymentId);
}

function* usedTwice(
  payments: ReadonlyMap<string, RecordedPayment>,
  kind: Violation['kind'],
  credentialOf: (payment: RecordedPayment) => string | undefined,
): Generator<Violation> {
  const holders = new Map<string, RecordedPayment>();
  for (const payment of payments.values()) {
    const credential = credentialOf(payment);
    if (credential === undefined || payment.calls.length === 0) continue;
    const holder = holders.get(credential);
    if (holder) yield { kind, words: `${credential}: by ${holder.key} and by ${payment.key}` };
    holders.set(credential, payment);
  }
}

import type { RecordedEvent } from '../../../src/ledger/rules/event.ts';
import { signedTransfer } from '../../support/permit2.ts';
import { isUpto } from '../../support/upto.ts';
import type { Records, RouteAnswer, SignedOnce } from '../records.ts';
import { routePriceWei } from '../route-config.ts';
import type { RecordedPayment } from './payments.ts';
import type { Landed } from './transfers.ts';
import type { Violation } from './violation.ts';

interface Facts {
  readonly records: Pick<Records, 'signed' | 'routeCalls' | 'movedOtherwise'>;
  readonly transfers: readonly Landed[];
  readonly payments: ReadonlyMap<string, RecordedPayment>;
  readonly events: readonly RecordedEvent[];
}

/** A payment by upto, and what its upstream's answer on record has used of it. */
interface Metered {
  readonly key: string;
  readonly dueAtoms: bigint;
  readonly moved: readonly Landed[];
  readonly payment: RecordedPayment | undefined;
}

/** What an answer takes of a payment, rounded up to an atom; undefined if it says no usable price. */
export function usedOf({ prices }: Pick<RouteAnswer, 'prices'>, signedAtoms: bigint): bigint | undefined {
  const [price = '', another] = prices;
  if (another !== undefined || !/^\d+$/.test(price) || BigInt(price) > routePriceWei) return undefined;
  const [whole, rest] = [
    (signedAtoms * BigInt(price)) / routePriceWei,
    (signedAtoms * BigInt(price)) % routePriceWei,
  ];
  return rest > 0n ? whole + 1n : whole;
}

function* meteredPayments({ records, transfers, payments, events }: Facts): Generator<Metered> {
  const calls = Map.groupBy(records.routeCalls, ({ stream }) => stream);
  for (const signed of records.signed.values()) {
    if (!isUpto(signed.payment)) continue;
    const { key } = signed;
    const payment = payments.get(key);
    const sum = payment && answerOnRecord(events, payment);
    const given = calls.get(payment?.stream ?? '')?.find(({ answer }) => answer && answer.sha256 === sum);
    const dueAtoms = (given?.answer && usedOf(given.answer, atomsOf(signed))) ?? 0n;
    yield { key, dueAtoms, payment, moved: transfers.filter((one) => one.key === key) };
  }
}

export function atomsOf({ payment }: SignedOnce): bigint {
  return signedTransfer(payment).value;
}

/** The hash of the answer that a payment is charged for. */
function answerOnRecord(events: readonly RecordedEvent[], { stream, nonce }: RecordedPayment) {
  const answered = events.findLast(
    (event) =>
      event.type === 'upstream_answered' && event.stream === stream && event.data.payment_nonce === nonce,
  );
  return answered?.type === 'upstream_answered' ? answered.data.result_sha256 : undefined;
}

/** Payments of which a facilitator moved more than was used, and which are on record as settled: nothing is delivered for them, and the whole is owed back. */
export function paidTooMuch(facts: Facts): Set<string> {
  return new Set(
    [...meteredPayments(facts)].flatMap(({ key, dueAtoms, moved, payment }) =>
      moved.some(({ amount }) => amount > dueAtoms) && payment && payment.settled.length > 0 ? key : [],
    ),
  );
}

/** A payment by upto moves what its answer says that it used, once; where the facilitator moves something else, the ledger has that. */
export function* meteredViolations(facts: Facts): Generator<Violation> {
  for (const { key, dueAtoms, moved, payment } of meteredPayments(facts)) {
    const words = `${key} moved ${moved.map(({ amount }) => amount).join(' and ')}, and used ${dueAtoms}`;
    const isOthers = facts.records.movedOtherwise.has(key);
    if (moved.length > 1 || moved.some(({ amount }) => amount !== dueAtoms && !isOthers))
      yield { kind: 'moved_otherwise', words };
    if (moved.some(({ amount }) => amount > dueAtoms) && payment && payment.calls.length > 0)
      yield { kind: 'delivered_for_too_much', words };
    for (const { data } of payment?.settled ?? []) {
      if (data.log_index === undefined)
        yield { kind: 'settled_by_word', words: `${words}: settled by ${data.transaction}, without its log` };
      if ('amount' in data && moved.some(({ amount }) => String(amount) !== data.amount))
        yield { kind: 'wrong_evidence', words: `${words}: ${data.amount} on record` };
    }
  }
}

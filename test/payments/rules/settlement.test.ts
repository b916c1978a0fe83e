import { describe, expect, test } from 'vitest';
import { encodeEventData, eventDescriptors, type LedgerEvent } from '../../../src/ledger/rules/event.ts';
import {
  decide,
  type SettlementDecision,
  type SettlementOutcome,
  type SettlementState,
  transferAlreadyClaimed,
} from '../../../src/payments/rules/settlement.ts';
import { signedPayment } from './payment-support.ts';
import { bytesOf, payer } from './support.ts';

const transaction = bytesOf('f6', 32);
const block = { blockNumber: 7n, blockHash: bytesOf('b1', 32), logIndex: 3 };
const waiting = { kind: 'waiting', callId: 5 } as const;
const enqueued = { kind: 'enqueued', callId: 5 } as const;
const leased = { kind: 'leased', callId: 5 } as const;
const kept = { kind: 'kept', callId: 5, attempt: 2 } as const;
const ended = { kind: 'ended' } as const;
const by = { evidence: 'block explorer', operator: 'ada' };

const base = { payment: signedPayment, isOverdue: false, call: waiting };
const reportedSettlement = {
  version: 3,
  seq: 103,
  at: '2027-01-15T08:00:00.000Z',
  amount: String(signedPayment.amount),
  transaction,
  evidence: 'facilitator',
} as const;
const provenSettlement = {
  version: 3,
  seq: 103,
  at: '2027-01-15T08:00:00.000Z',
  amount: String(signedPayment.amount),
  transaction,
  evidence: 'chain',
  proof: block,
} as const;

/** Every state that a payment can be in, with its call where that makes a difference. */
const states = {
  settling: { ...base, status: 'settling' },
  'settling and overdue': { ...base, status: 'settling', isOverdue: true },
  unknown: { ...base, status: 'settlement_unknown', reason: 'timeout' },
  'unknown, its call kept': { ...base, status: 'settlement_unknown', reason: 'timeout', call: kept },
  'unknown, its call ended': { ...base, status: 'settlement_unknown', reason: 'timeout', call: ended },
  'unknown, its transfer claimed': { ...base, status: 'settlement_unknown', reason: transferAlreadyClaimed },
  failed: { ...base, status: 'settlement_failed', reason: 'insufficient_funds' },
  'failed, its call kept': { ...base, status: 'settlement_failed', reason: 'x', call: kept },
  'failed, its call ended': { ...base, status: 'settlement_failed', reason: 'x', call: ended },
  'settled as reported': { ...base, status: 'settled', settled: reportedSettlement, call: enqueued },
  'settled as reported, its call leased': {
    ...base,
    status: 'settled',
    settled: reportedSettlement,
    call: leased,
  },
  'settled as reported, its call ended': {
    ...base,
    status: 'settled',
    settled: reportedSettlement,
    call: ended,
  },
  'settled with proof': { ...base, status: 'settled', settled: provenSettlement, call: enqueued },
  'settled with proof, its call leased': {
    ...base,
    status: 'settled',
    settled: provenSettlement,
    call: leased,
  },
  'settled with proof, its call ended': {
    ...base,
    status: 'settled',
    settled: provenSettlement,
    call: ended,
  },
} as const satisfies Record<string, SettlementState>;
type StateName = keyof typeof states;

const outcomes = {
  settled: { kind: 'settled', transaction, proof: undefined },
  'settled with proof': { kind: 'settled', transaction, proof: block },
  failed: { kind: 'failed', reason: 'insufficient_funds' },
  void: { kind: 'void', reason: 'authorization_expired' },
  unknown: { kind: 'unknown', reason: 'timeout' },
  'unknown with a transaction': { kind: 'unknown', reason: 'settlement_pending', transaction },
  'unknown with another payer': {
    kind: 'unknown',
    reason: 'payer_mismatch',
    transaction,
    settledPayer: bytesOf('99', 20),
  },
  'transfer claimed': { kind: 'unknown', reason: transferAlreadyClaimed },
  overdue: { kind: 'overdue', ageSecs: 700, reason: 'timeout' },
  confirmed: { kind: 'confirmed', transaction, proof: block },
  disproved: { kind: 'disproved', reason: 'not_on_chain' },
  reorged: { kind: 'reorged' },
  'paid by the operator': { kind: 'paid_by_operator', transaction, transfer: { logIndex: 8 }, ...by },
  'paid by the operator, with proof': { kind: 'paid_by_operator', transaction, transfer: block, ...by },
  'unpaid by the operator': { kind: 'unpaid_by_operator', ...by },
} as const satisfies Record<string, SettlementOutcome>;
type OutcomeName = keyof typeof outcomes;

/** A decision in one line: its event types, claims (+) and freed claims (-) by log index, and the call's next step. */
function brief(decision: SettlementDecision): string {
  if (decision.kind === 'superseded') return 'superseded';
  const { events, claims, freed, call } = decision;
  return [
    ...events.map(({ type }) => type),
    ...claims.map(({ logIndex }) => `+${logIndex}`),
    ...freed.map(({ logIndex }) => `-${logIndex}`),
    ...(call.kind === 'unchanged' ? [] : [`${call.kind} ${call.callId}`]),
  ].join(', ');
}

const paid = 'payment_settled, enqueued, release 5';
const paidWithProof = 'payment_settled, enqueued, +3, release 5';
const byOperator = 'operator_settlement_resolved, payment_settled';
const openForOperator = {
  'paid by the operator': `${byOperator}, enqueued, +8, release 5`,
  'paid by the operator, with proof': `${byOperator}, enqueued, +3, release 5`,
  'unpaid by the operator': 'operator_settlement_resolved, settlement_failed, watch 5',
};
const keptForOperator = {
  'paid by the operator': `${byOperator}, +8, release 5`,
  'paid by the operator, with proof': `${byOperator}, +3, release 5`,
  'unpaid by the operator': 'operator_settlement_resolved, settlement_failed',
};
const endedForOperator = {
  'paid by the operator': `${byOperator}, +8`,
  'paid by the operator, with proof': `${byOperator}, +3`,
  'unpaid by the operator': 'operator_settlement_resolved, settlement_failed',
};
const settling = {
  settled: paid,
  'settled with proof': paidWithProof,
  failed: 'settlement_failed, watch 5',
  void: 'settlement_failed, remove 5',
  unknown: 'settlement_unknown',
  'unknown with a transaction': 'settlement_unknown',
  'unknown with another payer': 'payer_mismatch, settlement_unknown',
  'transfer claimed': 'settlement_unknown',
  overdue: 'settlement_overdue',
  ...openForOperator,
};
const unknown = {
  settled: paid,
  'settled with proof': paidWithProof,
  void: 'settlement_failed, remove 5',
  'transfer claimed': 'settlement_unknown',
  overdue: 'settlement_overdue',
  ...openForOperator,
};

/** What each outcome decides in each state; everything that is not listed is superseded. */
const decisions: Record<StateName, Partial<Record<OutcomeName, string>>> = {
  settling,
  'settling and overdue': { ...settling, overdue: 'superseded' },
  unknown,
  'unknown, its call kept': {
    settled: 'payment_settled, release 5',
    'settled with proof': 'payment_settled, +3, release 5',
    void: 'settlement_failed',
    'transfer claimed': 'settlement_unknown',
    overdue: 'settlement_overdue',
    ...keptForOperator,
  },
  'unknown, its call ended': {
    settled: 'payment_settled',
    'settled with proof': 'payment_settled, +3',
    void: 'settlement_failed',
    'transfer claimed': 'settlement_unknown',
    overdue: 'settlement_overdue',
    ...endedForOperator,
  },
  'unknown, its transfer claimed': { ...unknown, 'transfer claimed': 'superseded' },
  failed: {
    settled: paid,
    'settled with proof': paidWithProof,
    void: 'remove 5',
    'transfer claimed': 'settlement_unknown',
  },
  'failed, its call kept': {
    settled: 'payment_settled, release 5',
    'settled with proof': 'payment_settled, +3, release 5',
    void: 'dead_lettered, remove 5',
    'transfer claimed': 'settlement_unknown',
  },
  'failed, its call ended': {
    settled: 'payment_settled',
    'settled with proof': 'payment_settled, +3',
    'transfer claimed': 'settlement_unknown',
  },
  'settled as reported': {
    confirmed: 'settlement_confirmed, +3',
    disproved: 'settlement_disproved, suspend 5',
  },
  'settled as reported, its call leased': {
    confirmed: 'settlement_confirmed, +3',
    disproved: 'settlement_disproved, mark_unpaid 5',
  },
  'settled as reported, its call ended': {
    confirmed: 'settlement_confirmed, +3',
    disproved: 'settlement_disproved',
  },
  'settled with proof': { reorged: 'settlement_reorged, -3, suspend 5' },
  'settled with proof, its call leased': { reorged: 'settlement_reorged, -3, mark_unpaid 5' },
  'settled with proof, its call ended': { reorged: 'settlement_reorged, -3' },
};

const names = (Object.keys(states) as StateName[]).flatMap((state) =>
  (Object.keys(outcomes) as OutcomeName[]).map((outcome) => ({ state, outcome })),
);

describe('the decision about a settlement', () => {
  test.each(names)('in the state $state is as listed for the outcome $outcome', ({ state, outcome }) => {
    const expected = decisions[state][outcome] ?? 'superseded';
    expect(brief(decide(states[state], outcomes[outcome]))).toBe(expected);
  });

  test('every decided event is well formed and legal in the state it is decided in', () => {
    const decided = names.flatMap(({ state, outcome }) => {
      const decision = decide(states[state], outcomes[outcome]);
      return decision.kind === 'superseded' ? [] : decision.events.map((event) => ({ state, event }));
    });
    expect(decided).toHaveLength(111);
    const illegal = decided.filter(({ state, event }) => {
      const { transition } = eventDescriptors[event.type];
      encodeEventData(event);
      if (transition.of !== 'payment') return false;
      const from: readonly string[] = transition.from;
      return !from.includes(states[state].status);
    });
    expect(illegal).toEqual([]);
  });
});

function eventsOf(state: StateName, outcome: OutcomeName): readonly LedgerEvent['data'][] {
  const decision = decide(states[state], outcomes[outcome]);
  return decision.kind === 'record' ? decision.events.map(({ data }) => data) : [];
}

describe('the events of a decision', () => {
  test('name no block and claim no transfer when only the facilitator reported the settlement', () => {
    const [settled] = eventsOf('settling', 'settled');
    expect(settled).toEqual({
      network: signedPayment.network,
      asset: signedPayment.asset,
      payer,
      payment_nonce: signedPayment.nonce,
      amount: String(signedPayment.amount),
      transaction,
      evidence: 'facilitator',
    });
  });

  test('name the block and claim the log entry of a settlement with proof', () => {
    const decision = decide(states.unknown, outcomes['settled with proof']);
    expect(decision).toMatchObject({
      claims: [
        { network: signedPayment.network, transaction, logIndex: 3, paymentNonce: signedPayment.nonce },
      ],
    });
    expect(eventsOf('unknown', 'settled with proof')).toMatchObject([
      { evidence: 'chain', block_number: '7', block_hash: block.blockHash, log_index: 3 },
      { call_id: 5, payment_nonce: signedPayment.nonce },
    ]);
  });

  test('keep the transaction and the payer that the facilitator reported for an unknown settlement', () => {
    expect(eventsOf('settling', 'unknown with another payer')).toMatchObject([
      { settled_payer: bytesOf('99', 20) },
      { reason: 'payer_mismatch', transaction },
    ]);
  });

  test('say whether the call of a disproved or reorged settlement was withdrawn or kept', () => {
    expect(eventsOf('settled as reported', 'disproved')).toMatchObject([{ call: 'withdrawn', transaction }]);
    expect(eventsOf('settled with proof, its call leased', 'reorged')).toMatchObject([
      { call: 'kept', transaction, block_number: '7' },
    ]);
  });

  test('deliver the call in the append that settles its payment, where the request serves it itself', () => {
    const lease = { leaseId: 'l', leaseMs: 30_000 };
    const settled = { ...outcomes.settled, lease } as const;
    const decision = decide(states.settling, settled);
    expect(decision).toMatchObject({ call: { kind: 'lease', callId: 5, ...lease } });
    const types = decision.kind === 'record' ? decision.events.map(({ type }) => type) : [];
    expect(types).toEqual(['payment_settled', 'enqueued', 'delivered']);
    // it was with a runner before: its next attempt has another number
    expect(brief(decide(states['unknown, its call kept'], settled))).toBe(
      brief(decide(states['unknown, its call kept'], outcomes.settled)),
    );
  });

  test('record the operator, the evidence and the transaction of a resolution by an operator', () => {
    expect(eventsOf('unknown', 'paid by the operator')).toMatchObject([
      { ...by, paid: true, transaction },
      { evidence: 'operator', transaction },
      { call_id: 5 },
    ]);
    expect(eventsOf('unknown', 'unpaid by the operator')).toMatchObject([
      { ...by, paid: false },
      { reason: 'operator_decision' },
    ]);
  });
});

import { createHash } from 'node:crypto';
import { recordAttempt } from '../../src/calls/use-cases/record-attempt.ts';
import { createFailureRuns } from '../../src/calls/use-cases/failure-runs.ts';
import { leaseCalls } from '../../src/calls/store/calls.ts';
import { orderedUuid } from '../../src/base/values/ordered-uuid.ts';
import type { Caip2 } from '../../src/base/values/primitives.ts';
import { openDatabase } from '../../src/ledger/store/database.ts';
import type { Lane } from '../../src/ledger/store/lane.ts';
import type { LaneCommand } from '../../src/ledger/store/lane-command.ts';
import { paidCallKey, paymentFromData } from '../../src/payments/rules/payment.ts';
import { paymentClaim, paymentKey, transferClaim } from '../../src/payments/store/claims.ts';
import { paidJob } from '../../test/support/synthetic-ledger.ts';
import type { Ledger } from '../ledger.ts';

/** What stays open at the end of each ledger, whatever its age: settlements without an outcome, calls that wait, refunds due. */
const left = { unsettled: 10, waiting: 10, dead: 20 } as const;

/** The commands of the n-th job of a ledger, as a gateway appends them. */
export function startOf(n: number): { readonly start: LaneCommand; settle(callId: number): LaneCommand } {
  const told = paidJob(n, { startMs: Date.now() });
  const stream = told[0]?.stream ?? '';
  const [quote, verified, started, settled] = told.map(({ event }) => event);
  if (
    quote?.type !== 'quote_issued' ||
    started?.type !== 'settlement_started' ||
    !verified ||
    settled?.type !== 'payment_settled'
  )
    throw new Error('another order of events');
  const { service_id: serviceId, job_index: jobIndex } = quote.data;
  const bytes = Buffer.from(`{"order":${n}}`);
  const bodySha256 = `0x${createHash('sha256').update(bytes).digest('hex')}`;
  const starts = { ...started, data: { ...started.data, body_sha256: bodySha256, body_bytes: bytes.length } };
  const { binding, payment: signed } = started.data;
  const payment = paymentFromData(signed);
  const { transaction, log_index: logIndex = 0, payment_nonce: nonce } = settled.data;
  const start: LaneCommand = {
    stream,
    expect: 0,
    events: [quote, verified, starts],
    claims: [paymentClaim(payment, binding)],
    call: {
      op: 'add',
      serviceId,
      jobIndex,
      bodyId: orderedUuid(),
      body: { contentType: 'application/json', bytes },
      network: signed.network,
      asset: signed.asset,
      symbol: signed.symbol,
      caller: undefined,
      payment: paymentKey(payment),
      idempotencyKey: paidCallKey({ payment: paymentKey(payment), job: { serviceId, jobIndex }, bodySha256 }),
      delayMs: 86_400_000,
    },
  };
  const settle = (callId: number): LaneCommand => ({
    stream,
    expect: 3,
    events: [settled, { type: 'enqueued', data: { call_id: callId, payment_nonce: nonce } }],
    claims: [transferClaim(signed.network as Caip2, transaction, logIndex, nonce)],
    call: { op: 'release', callId },
  });
  return { start, settle };
}

/** Appends a job up to its settlement, or only its start. */
export async function appendJob(lane: Lane, n: number, settles: boolean): Promise<void> {
  const { start, settle } = startOf(n);
  const started = await lane.append(start);
  if (started.outcome !== 'ok' || started.call_id === null) throw new Error(`job ${n} was not started`);
  if (!settles) return;
  const { outcome } = await lane.append(settle(started.call_id));
  if (outcome !== 'ok') throw new Error(`job ${n} was not settled: ${outcome}`);
}

/** Leaves the same open at the end of a ledger of `jobs` finished ones. */
export async function leaveOpen({ pool }: Ledger, lane: Lane, jobs: number): Promise<void> {
  let n = jobs;
  for (let i = 0; i < left.unsettled; i++) await appendJob(lane, n++, false);
  for (let i = 0; i < left.waiting + left.dead; i++) await appendJob(lane, n++, true);
  const calls = await leaseCalls(pool, [1], left.dead, 600);
  const ports = {
    pool,
    db: openDatabase(pool),
    lane,
    // a dead letter reads none of it
    config: {} as Parameters<typeof recordAttempt>[0]['config'],
    onCallReleased: () => {},
    failureRuns: createFailureRuns(),
  };
  for (const call of calls) {
    const dead = { kind: 'dead', reason: 'http_400' } as const;
    const { kind } = await recordAttempt(ports, call, dead, { isFirstNews: true, runner: 'bench' });
    if (kind !== 'recorded') throw new Error(`call ${call.callId} did not become a dead letter`);
  }
}

import { createFailureRuns } from '../../src/calls/use-cases/failure-runs.ts';
import { recordAttempt } from '../../src/calls/use-cases/record-attempt.ts';
import { type LeasedCall, leaseCalls } from '../../src/calls/store/calls.ts';
import { topUp } from '../../src/jobs/use-cases/top-ups/top-up.ts';
import { type Landed, paymentKey } from './chain.ts';
import { chart, commodityOf, credit } from './chart.ts';
import { accountOfTopUp } from './credit.ts';
import { refundLater } from './refunds.ts';
import { makeSale, readAgain, recordSale, settledAt, startSale, topUpService } from './sale.ts';
import { count, inTurns, setClock, type Sale, type World } from './world.ts';

const atOnce = 256;
const leasedAtOnce = 500;
const leaseSecs = 600;
const quietLog = { info: () => {}, warn: () => {}, error: () => {} };
/** No attempt of a year is tried again, so that nothing is read of it. */
type RecordingConfig = Parameters<typeof recordAttempt>[0]['config'];
const noRetries = {} as RecordingConfig;

export interface StepPlan {
  readonly atMs: number;
  /** When the settlements of its block are recorded: half a minute later, unless the month ends between. */
  readonly recordedMs?: number;
  readonly sales: readonly number[];
}

/** A block of payments: signed, sent, mined, recorded, delivered. Beside it operators do what is due. */
export async function makeStep(world: World, { atMs, recordedMs, sales }: StepPlan): Promise<Sale[]> {
  await setClock(world, atMs);
  await confirmReported(world);
  await doTasks(world);
  const made = sales.map((n) => makeSale(world, n));
  await inTurns(made, atOnce, (sale) => startSale(world, sale));
  await world.chain.submit(made.map(({ payment }) => payment));
  const { payments } = await mineStep(world, atMs + 20_000);
  await setClock(world, recordedMs ?? atMs + 30_000);
  await settleAll(world, made, payments);
  return made;
}

export async function mineStep(world: World, atMs: number) {
  const block = await world.chain.mine(atMs);
  if (block.reverted.length > 0) throw new Error(`reverted: ${block.reverted.join(' ')}`);
  world.step += 1;
  world.blockMs = Math.floor(atMs / 1_000) * 1_000;
  for (const tell of world.onMined.splice(0)) tell();
  return block;
}

async function doTasks(world: World): Promise<void> {
  const due = world.tasks.filter(({ step }) => step <= world.step);
  world.tasks = world.tasks.filter(({ step }) => step > world.step);
  for (const task of due) await task.run();
}

/** Records that sales were settled in the newest block. */
export async function settleAll(
  world: World,
  sales: readonly Sale[],
  payments: ReadonlyMap<string, Landed>,
): Promise<void> {
  const { model, nowMs, blockMs } = world;
  await inTurns(sales, atOnce, async (sale) => {
    const landed = payments.get(paymentKey(sale.payment));
    if (!landed) throw new Error(`sale ${sale.n} is not in the block`);
    await recordSale(world, sale, settledAt(landed, sale.isReported));
    const { token, booked } = sale;
    const { atoms } = booked;
    model.move(blockMs, token, atoms);
    const holding = sale.isReported ? chart.unconfirmed(token) : chart.chain(token);
    model.post(nowMs, holding, chart.undelivered, commodityOf(token), atoms);
    model.payments.set(booked.name, booked);
    booked.blockMs = blockMs;
    booked.settledMs = nowMs;
    if (sale.isReported) world.reported.push({ sale, landed });
  });
  count(world, 'payments', sales.length);
}

/** Records what the chain shows of sales that a facilitator has reported. */
async function confirmReported(world: World): Promise<void> {
  const { model, nowMs, reported } = world;
  world.reported = [];
  for (const { sale, landed } of reported) {
    const { token, booked, serviceId, jobIndex, fate } = sale;
    await readAgain(world, sale);
    await recordSale(world, sale, { kind: 'confirmed', ...landed });
    model.post(nowMs, chart.chain(token), chart.unconfirmed(token), commodityOf(token), booked.atoms);
    if (!world.open.has(sale.digest) && (fate === 'delivered' || fate === 'goodwill')) {
      const [unproven, proven] = [chart.unproven(serviceId, jobIndex), chart.job(serviceId, jobIndex)];
      model.post(nowMs, unproven, proven, commodityOf(token), booked.atoms);
    }
    count(world, 'payments confirmed later');
  }
}

/** Runners take all calls that are ready. */
export async function deliverAll(world: World, afterMs = 30_000): Promise<void> {
  await setClock(world, world.nowMs + afterMs);
  const { ledger } = world;
  for (;;) {
    const calls = await leaseCalls(ledger.pool, [1, topUpService], leasedAtOnce, leaseSecs);
    if (calls.length === 0) return;
    await inTurns(calls, atOnce, (call) => deliver(world, call));
  }
}

async function deliver(world: World, call: LeasedCall): Promise<void> {
  const { ledger, model, open, nowMs } = world;
  const sale = open.get(call.stream);
  if (!sale) throw new Error(`call ${call.callId} belongs to no sale`);
  const { token, booked, fate, serviceId, jobIndex, isReported } = sale;
  const context = {
    ...ledger,
    pool: ledger.pool,
    db: ledger.db,
    lane: ledger.lane,
    config: noRetries,
    onCallReleased: () => {},
    failureRuns: createFailureRuns(),
  };
  if (fate === 'top_up') {
    const accountId = await accountOfTopUp(world, sale);
    const { payment, digest, creditMicros } = sale;
    const { network, asset, symbol, decimals, amount, payer } = payment;
    const paid = {
      call_id: call.callId,
      quote_digest: digest,
      network,
      asset,
      symbol,
      decimals,
      atoms: String(amount),
      payer,
    };
    const credited = await topUp({ ...context, log: quietLog }, paid, creditMicros, { accountId });
    if (credited.kind !== 'credited') throw new Error(`top-up ${sale.n} was refused`);
    world.credit.set(accountId, (world.credit.get(accountId) ?? 0n) + creditMicros);
    model.post(nowMs, chart.undelivered, chart.conversion, commodityOf(token), booked.atoms);
    model.post(nowMs, chart.conversion, chart.boughtCredit, credit, creditMicros);
    count(world, 'top-ups');
  }
  const outcome =
    fate === 'dead_letter'
      ? ({ kind: 'dead', reason: 'http_400' } as const)
      : ({ kind: 'completed', result: Buffer.alloc(0), resultOmitted: true } as const);
  const recorded = await recordAttempt(context, call, outcome, { isFirstNews: true, runner: 'year' });
  if (recorded.kind !== 'recorded') throw new Error(`call ${call.callId} lost its lease`);
  open.delete(sale.digest);
  if (fate === 'dead_letter') {
    model.post(nowMs, chart.undelivered, chart.refundsDue, commodityOf(token), booked.atoms);
    booked.dueAtoms = booked.atoms;
    count(world, 'dead letters');
  } else if (fate !== 'top_up') {
    const income = isReported ? chart.unproven(serviceId, jobIndex) : chart.job(serviceId, jobIndex);
    model.post(nowMs, chart.undelivered, income, commodityOf(token), booked.atoms);
  }
  if (fate === 'dead_letter' || fate === 'goodwill') refundLater(world, sale);
}

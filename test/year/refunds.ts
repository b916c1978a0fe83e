import { planBatch, startBatch } from '../../src/finance/use-cases/refunds/make-batch.ts';
import {
  type BatchRecordOrder,
  recordBatch,
  recordRefund,
} from '../../src/finance/use-cases/refunds/record-refund.ts';
import type { Address, Hex } from '../../src/base/values/primitives.ts';
import { hex32Of } from '../support/synthetic-ledger.ts';
import { multisig, network, payTo, vault } from './chain.ts';
import { chart, commodityOf } from './chart.ts';
import { spendGas } from './gas.ts';
import type { ModelPayment } from './model.ts';
import { count, later, operators, type Sale, stepsToFinal, type World } from './world.ts';

/** How the dead letters of a year are refunded, in turn. */
const ways = ['in_parts', 'by_the_vault', 'elsewhere', 'never', 'whole'] as const;

export function refundLater(world: World, sale: Sale): void {
  const { n, booked, payment, digest: stream } = sale;
  const order = { stream, booked, from: payTo, to: payment.payer, atoms: booked.atoms };
  const at = 1 + (n % 4);
  if (sale.fate === 'goodwill') return later(world, at, () => refund(world, { ...order, isGoodwill: true }));
  switch (ways[Math.floor(n / 50) % ways.length]) {
    case 'in_parts': {
      const part = (booked.atoms * 2n) / 5n;
      later(world, at, () => refund(world, { ...order, atoms: part }));
      // the rest may follow in another month
      return later(world, at + 8, () => refund(world, { ...order, atoms: booked.atoms - part }));
    }
    case 'by_the_vault':
      return later(world, at, () => refund(world, { ...order, from: vault }));
    case 'elsewhere': {
      const to: Address = `0x${hex32Of(`${world.options.seed} new wallet ${n}`).slice(26)}`;
      return later(world, at, () => refund(world, { ...order, to, evidence: `letter ${n}` }));
    }
    case 'whole':
      return later(world, at, () => refund(world, order));
    default:
  }
}

interface RefundOf {
  readonly stream: Hex;
  readonly booked: ModelPayment;
  readonly atoms: bigint;
  /** The account of the operator that pays it. */
  readonly from: Address;
  readonly to: Address;
  /** Why it goes to another address than the payer's. */
  readonly evidence?: string;
  readonly isGoodwill?: boolean;
}

/** Sends a payment back in the next block, or a part of it, and records that once it is final. */
async function refund(world: World, refundOf: RefundOf): Promise<void> {
  const { stream, booked, atoms, from, to } = refundOf;
  const { chain, model } = world;
  const { token } = booked;
  const transaction = await chain.send(token, from, to, atoms);
  world.onMined.push(() => {
    const { blockMs } = world;
    if (from === payTo) model.move(blockMs, token, -atoms);
    const moved = from === payTo ? -atoms : 0n;
    const sent = { name: stream, token, atoms: moved, blockMs, bookedMs: Infinity, as: 'refund' as const };
    model.transfers.push(sent);
    later(world, stepsToFinal - 1, async () => {
      await record(world, refundOf, transaction);
      sent.bookedMs = world.nowMs;
    });
  });
}

async function record(world: World, refundOf: RefundOf, transaction: Hex): Promise<void> {
  const { stream, booked, atoms, from, to, evidence, isGoodwill = false } = refundOf;
  const { token } = booked;
  const [operator] = operators;
  const order = {
    quoteDigest: stream,
    paymentNonce: undefined,
    transaction,
    amount: atoms,
    ...(evidence !== undefined && { elsewhere: { to, evidence } }),
    operator,
    isGoodwill,
  };
  const answer = await recordRefund(world.ledger, order, world.chains);
  if (answer.kind !== 'recorded')
    throw new Error(
      `a refund was not recorded: ${JSON.stringify(answer, (_, value: unknown) => String(value))}`,
    );
  const holding = from === payTo ? chart.chain(token) : chart.treasury(token);
  const owed = isGoodwill ? chart.goodwill : chart.refundsDue;
  world.model.post(world.nowMs, owed, holding, commodityOf(token), atoms);
  await spendGas(world, transaction, 'Refund');
  count(world, isGoodwill ? 'refunds in goodwill' : 'refunds');
  if (!isGoodwill) booked.dueAtoms -= atoms;
  if (atoms < booked.atoms) count(world, 'of them in part');
  if (evidence !== undefined) count(world, 'of them to another address');
}

const mostInBatch = 1_000;
const refundsATransaction = 100;

/** Refunds all that is due of some payments by a batch, in one block, from a multisig that is not a payee. */
export async function refundTogether(world: World, payments: readonly ModelPayment[]): Promise<void> {
  const plan = await planBatch(world.ledger.pool, { network, max: mostInBatch }, world.chains);
  if (plan.kind !== 'planned') throw new Error(`no batch of refunds was made: ${plan.kind}`);
  const byName = new Map(payments.map((one) => [one.name, one]));
  const chosen = { ...plan, refunds: plan.refunds.filter(({ of }) => byName.has(of.quoteDigest)) };
  const by = { operator: operators[0], isOneTransaction: false };
  const { batch } = await startBatch(world.ledger, chosen, network, by);
  const { refunds } = batch;
  const transactions: Hex[] = [];
  for (let next = 0; next < refunds.length; next += refundsATransaction) {
    const calls = refunds.slice(next, next + refundsATransaction).map(({ call }) => call);
    transactions.push(await world.chain.sendTogether(calls));
  }
  world.onMined.push(() => {
    const { blockMs } = world;
    const sent = payments.map(({ name, token }) => ({
      name,
      token,
      atoms: 0n,
      blockMs,
      bookedMs: 0,
      as: 'refund' as const,
    }));
    world.model.transfers.push(...sent);
    later(world, stepsToFinal - 1, () =>
      recordTogether(world, { batch, transactions, operator: operators[0] }, byName),
    );
  });
}

async function recordTogether(
  world: World,
  order: BatchRecordOrder,
  byName: ReadonlyMap<string, ModelPayment>,
): Promise<void> {
  for await (const { refund: one, answer } of recordBatch(world.ledger, order, world.chains)) {
    const booked = byName.get(one.quote_digest);
    if (answer.kind !== 'recorded' || !booked)
      throw new Error(`a refund of a batch was not recorded: ${answer.kind}`);
    // the multisig has its transactions sent by somebody else, who pays for them
    if (answer.cost.answer.kind !== 'refused') throw new Error('the gas of a stranger is in the books');
    const { token, atoms } = booked;
    world.model.post(
      world.nowMs,
      chart.refundsDue,
      chart.treasury(token, multisig),
      commodityOf(token),
      atoms,
    );
    booked.dueAtoms = 0n;
    count(world, 'refunds in a batch');
  }
}

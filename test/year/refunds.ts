import { recordRefund } from '../../src/refunds/record-refund.ts';
import type { Address, Hex } from '../../src/domain/values/primitives.ts';
import { payTo, vault } from './chain.ts';
import { chart, commodityOf } from './chart.ts';
import type { ModelPayment } from './model.ts';
import { count, later, operators, stepsToFinal, type Sale, type World } from './world.ts';

/** Of the dead letters every fifth is not refunded before the year is over. */
const unrefunded = 5;

export function refundLater(world: World, sale: Sale): void {
  const { n, booked, payment, fate } = sale;
  const isGoodwill = fate === 'goodwill';
  if (!isGoodwill && Math.floor(n / 50) % unrefunded === 3) return;
  const from = Math.floor(n / 50) % unrefunded === 1 ? vault : payTo;
  later(world, 1 + (n % 4), () =>
    refund(world, { stream: sale.digest, booked, payer: payment.payer, from, isGoodwill }),
  );
}

export interface RefundOf {
  readonly stream: Hex;
  readonly booked: ModelPayment;
  readonly payer: Address;
  /** The account of the operator that pays it. */
  readonly from: Address;
  readonly isGoodwill: boolean;
}

/** Sends a whole payment back in the next block, and records that once it is final. */
export async function refund(
  world: World,
  { stream, booked, payer, from, isGoodwill }: RefundOf,
): Promise<void> {
  const { chain, model } = world;
  const { token, atoms } = booked;
  const transaction = await chain.send(token, from, payer, atoms);
  world.onMined.push(() => {
    const { blockMs } = world;
    if (from === payTo) model.move(blockMs, token, -atoms);
    const transfer = {
      name: stream,
      token,
      atoms: from === payTo ? -atoms : 0n,
      blockMs,
      bookedMs: Infinity,
      as: 'refund' as const,
    };
    model.transfers.push(transfer);
    later(world, stepsToFinal - 1, async () => {
      const [operator] = operators;
      const order = { quoteDigest: stream, paymentNonce: undefined, transaction, operator, isGoodwill };
      const answer = await recordRefund(world.ledger, order, world.chains);
      if (answer.kind !== 'recorded') throw new Error(`a refund was not recorded: ${JSON.stringify(answer)}`);
      const holding = from === payTo ? chart.chain(token) : chart.treasury(token);
      const owed = isGoodwill ? chart.goodwill : chart.refundsDue;
      model.post(world.nowMs, owed, holding, commodityOf(token), atoms);
      transfer.bookedMs = world.nowMs;
      booked.isDue = false;
      count(world, isGoodwill ? 'refunds in goodwill' : 'refunds');
    });
  });
}

import type { Hex } from '../../src/base/values/primitives.ts';
import { createScanner } from '../../src/payments/peers/chain/transfer-scan.ts';
import { beginRecovery, recordSearch, searchNetworks } from '../../src/finance/use-cases/recovery/recover.ts';
import { readExportEnd } from '../../src/ledger/store/export.ts';
import { readLogGeneration } from '../../src/audit/store/log.ts';
import { paymentKey as streamOfLost } from '../../src/payments/store/claims.ts';
import { chainId, network, paymentKey } from './chain.ts';
import { chart, commodityOf } from './chart.ts';
import { yearSigner } from './ledger.ts';
import { refundTogether } from './refunds.ts';
import { makeSale, readAgain, recordSale, settledAt, startSale } from './sale.ts';
import { deliverAll, mineStep, settleAll } from './step.ts';
import { count, inTurns, later, operators, setClock, type Sale, type World } from './world.ts';

const atOnce = 256;

/**
 * A block of payments that the chain takes back: the payments of the block that replaces it are the same but for one, in another order.
 */
export async function reorg(world: World, atMs: number, numbers: readonly number[]): Promise<void> {
  const { chain, model } = world;
  await setClock(world, atMs);
  const sales = numbers.map((n) => makeSale(world, n, true));
  await inTurns(sales, atOnce, (sale) => startSale(world, sale));
  const goBack = await chain.remember();
  await chain.submit(sales.map(({ payment }) => payment));
  const first = await chain.mine(atMs + 20_000);
  await setClock(world, atMs + 30_000);
  for (const sale of sales) {
    const landed = first.payments.get(paymentKey(sale.payment));
    if (landed) await recordSale(world, sale, settledAt(landed, false));
  }
  await goBack();
  const [dropped, ...kept] = sales;
  if (!dropped) return;
  await chain.submit(kept.toReversed().map(({ payment }) => payment));
  await setClock(world, atMs + 50_000);
  for (const sale of sales) {
    const callId = callOf(sale);
    await readAgain(world, sale);
    await recordSale(world, sale, { kind: 'reorged' });
    await readAgain(world, sale, callId);
  }
  const { payments } = await mineStep(world, atMs + 40_000);
  await settleAll(world, kept, payments);
  await recordSale(world, dropped, { kind: 'void', reason: 'expired' });
  world.open.delete(dropped.digest);
  const { booked, token } = dropped;
  // it was in the books, and is not
  const posted = { debit: chart.chain(token), credit: chart.undelivered };
  model.post(atMs + 30_000, posted.debit, posted.credit, commodityOf(token), booked.atoms);
  model.post(atMs + 50_000, posted.credit, posted.debit, commodityOf(token), booked.atoms);
  count(world, 'payments reorged', sales.length);
  await deliverAll(world);
}

function callOf({ n, started }: Sale): number {
  if (started?.state.call.kind !== 'waiting') throw new Error(`sale ${n} has no call that waits`);
  return started.state.call.callId;
}

/**
 * The database is lost after a backup: what was recorded in between is gone, and its payments are on the chain. The operator restores
 * the backup, recovers the ledger, and refunds what the chain shows.
 */
export async function restore(world: World, atMs: number, numbers: readonly number[]): Promise<void> {
  await setClock(world, atMs - 60_000);
  const lostLedger = world.ledger;
  const backup = await lostLedger.copy();
  await setClock(world, atMs);
  const sales = numbers.map((n) => makeSale(world, n, true));
  await inTurns(sales, atOnce, (sale) => startSale(world, sale));
  await world.chain.submit(sales.map(({ payment }) => payment));
  const { payments } = await mineStep(world, atMs + 20_000);
  const paidMs = world.blockMs;
  for (const sale of sales) {
    const landed = payments.get(paymentKey(sale.payment));
    if (landed) await recordSale(world, sale, settledAt(landed, false));
    world.open.delete(sale.digest);
  }
  await lostLedger.drop();
  world.ledger = backup;
  for (let hours = 1; hours <= 4; hours++) await mineStep(world, atMs + hours * 3_600_000);
  await setClock(world, atMs + 5 * 3_600_000);
  await recover(world, atMs);
  const found = sales.map(({ payment, booked, token }) => {
    const { atoms } = booked;
    const name: Hex = streamOfLost(payment);
    const lost = { ...booked, name, blockMs: paidMs, settledMs: world.nowMs, dueAtoms: atoms };
    world.model.payments.set(name, lost);
    world.model.move(paidMs, token, atoms);
    world.model.post(world.nowMs, chart.chain(token), chart.refundsDue, commodityOf(token), atoms);
    return lost;
  });
  later(world, 1, () => refundTogether(world, found));
  count(world, 'payments lost with the database, and found', sales.length);
}

async function recover(world: World, atMs: number): Promise<void> {
  const { ledger, chain, nowMs } = world;
  const { last: keptSeq } = await readExportEnd(ledger.pool);
  const { generation: after } = await readLogGeneration(ledger.pool);
  const sinceSecs = Math.floor(atMs / 1_000) - 60;
  const loss = {
    reason: 'forced',
    keptSeq,
    anchored: undefined,
    lostFrom: undefined,
    lostTo: undefined,
    sinceSecs,
  };
  const [operator] = operators;
  const recovery = await beginRecovery(ledger, { loss, sinceSecs, operator, signer: yearSigner, after });
  if (!recovery) throw new Error('the recovery did not begin');
  const scanner = createScanner({ network, chainId, rpcUrl: chain.rpcUrl, timeoutMs: 10_000 });
  const chains = new Map([[network as string, scanner]]);
  const untilSecs = Math.floor(nowMs / 1_000) - 3 * 3_600;
  const options = { chains, accepted: [], sinceSecs, untilSecs, onProgress: () => {} };
  for await (const found of searchNetworks(ledger, options, new Set())) {
    if (found.kind === 'failed') throw new Error(found.words);
    if (!found.search.isComplete) throw new Error('the search is not complete');
    await recordSearch(ledger, recovery, network, found.search);
  }
  await scanner.close();
}

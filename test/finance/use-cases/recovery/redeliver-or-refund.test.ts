import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import type { RefundBatch } from '../../../../src/finance/rules/refund-batch.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import { recordRefund } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { noteSentRefund, startRefund } from '../../../../src/finance/use-cases/refunds/send-refund.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { chainsAt, network, openLedger } from '../refunds/support.ts';
import { useChain } from '../../../support/devnet.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { transferToken } from '../../../support/onchain.ts';
import { payer } from '../../../support/payer.ts';
import { temporaryFolder, tollbook } from '../../../support/program.ts';
import { endOfPeriod } from '../../../support/reconcile.ts';
import { eventually } from '../../../support/wait.ts';
import { signedTransfer } from '../../../support/permit2.ts';
import { lossyRestore, redelivery, send, streamOf, type TakenPayment } from './support.ts';

const chain = useChain();

const refusedAsRefunded = {
  status: 409,
  json: { code: 'payment_recovered', details: [expect.stringContaining('its refund is being sent')] },
};

test('a recovered payment whose refund is started is not delivered: neither where a wallet was asked, nor where a batch has it', async () => {
  const { database, lost, start, recover, delivered } = await lossyRestore(chain, ['gold', 'silver']);
  const [gold, silver] = lost as [TakenPayment, TakenPayment];
  expect((await recover()).stdout).toContain('Refund due');
  const gateway = await start();
  const ledger = openLedger(database);
  const chains = chainsAt(chain.rpcUrl);
  const paymentNonce = signedTransfer(gold.payment).nonce;
  const of = { quoteDigest: streamOf(gold), paymentNonce, operator: 'ada' };
  await eventually(async () =>
    expect(await startRefund(ledger, of, chains)).toMatchObject({ kind: 'started' }),
  );
  const before = delivered().length;
  const giveBack = ({ payment: { accepted } }: TakenPayment) =>
    transferToken(chain.rpcUrl, {
      key: devnetKeys.payTo,
      asset: accepted.asset,
      to: payer.address.toLowerCase() as Hex,
      amount: BigInt(accepted.amount),
    });
  const transaction = await giveBack(gold);
  await noteSentRefund(ledger, { ...of, transaction }, chains);
  // the payer sees the refund in a block before it is final, and asks for delivery
  expect(await send(gateway, gold.payment, gold.body, await redelivery(gold, gold.body))).toMatchObject(
    refusedAsRefunded,
  );

  const out = path.join(temporaryFolder(), 'batch.json');
  const rpc = ['--rpc', `${network}=${chain.rpcUrl}`];
  const env = { DATABASE_URL: database.url };
  const batch = ['refunds', 'batch', '--network', network, '--out', out, '--by', 'ada', ...rpc];
  await eventually(async () => expect(await tollbook(batch, env)).toMatchObject({ code: 0 }));
  const { refunds } = JSON.parse(readFileSync(out, 'utf8')) as RefundBatch;
  expect(refunds.map(({ quote_digest: digest }) => digest)).toContain(streamOf(silver));
  expect(refunds.map(({ quote_digest: digest }) => digest)).not.toContain(streamOf(gold));
  expect(
    await send(gateway, silver.payment, silver.body, await redelivery(silver, silver.body)),
  ).toMatchObject(refusedAsRefunded);
  const other = await giveBack(silver);
  await endOfPeriod(chain.rpcUrl);
  const record = { ...of, transaction, isGoodwill: false };
  await eventually(async () =>
    expect(await recordRefund(ledger, record, chains)).toMatchObject({ kind: 'recorded' }),
  );
  const recorded = await tollbook(
    ['refunds', 'record', '--batch', out, '--tx', other, '--by', 'ada', ...rpc],
    env,
  );
  expect(recorded.stdout).toContain('Refunded: ');
  // it says what became of the payment, also to a client that asks for no delivery
  for (const taken of [gold, silver])
    for (const headers of [await redelivery(taken, taken.body), {}])
      expect(await send(gateway, taken.payment, taken.body, headers)).toMatchObject({
        status: 409,
        json: { code: 'payment_recovered', details: ['it was refunded'] },
      });
  expect(delivered()).toHaveLength(before);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('of a redelivery and a refund at the same moment one is refused', async () => {
  const { database, lost, start, recover } = await lossyRestore(chain, ['raced']);
  const [raced] = lost as [TakenPayment];
  await recover();
  const gateway = await start();
  const ledger = openLedger(database);
  const chains = chainsAt(chain.rpcUrl);
  const paymentNonce = signedTransfer(raced.payment).nonce;
  const of = { quoteDigest: streamOf(raced), paymentNonce, operator: 'ada' };
  const headers = await redelivery(raced, raced.body);
  const [answer, started] = await Promise.all([
    send(gateway, raced.payment, raced.body, headers),
    startRefund(ledger, of, chains),
  ]);
  expect([202, 409]).toContain(answer.status);
  expect(started.kind).toBe(answer.status === 202 ? 'refused' : 'started');
  const types = (await readStream(database.pool, streamOf(raced))).events.map(({ type }) => type);
  expect(types.includes('redelivery_requested')).toBe(!types.includes('refund_started'));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

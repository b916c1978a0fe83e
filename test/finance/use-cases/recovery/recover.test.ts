import { expect, onTestFinished, test } from 'vitest';
import { openCheckpoint, parseVerifierKey } from '../../../../src/base/values/log/checkpoint.ts';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { testToken } from '../../../../src/devnet/contracts.ts';
import type { Hex } from '../../../../src/base/values/primitives.ts';
import type { RecordedEvent } from '../../../../src/ledger/rules/event.ts';
import { recordRefund } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { chainsAt, openLedger } from '../refunds/support.ts';
import { findLoss } from '../../../../src/finance/use-cases/recovery/find-loss.ts';
import { beginRecovery } from '../../../../src/finance/use-cases/recovery/recover.ts';
import { writerRole } from '../../../../src/ledger/store/database.ts';
import { openLane } from '../../../../src/ledger/store/lane.ts';
import { readHead } from '../../../../src/audit/store/log.ts';
import { readHalt } from '../../../../src/ledger/store/recovery.ts';
import { backUp } from '../../../support/backup.ts';
import { createDatabase } from '../../../support/database.ts';
import { newStream, refused } from '../../../support/events.ts';
import { Balances } from '../../../../src/base/values/entry.ts';
import { Bookkeeper } from '../../../../src/audit/rules/bookkeeping/bookkeeper.ts';
import { projectToHead } from '../../../../src/audit/use-cases/projections/project.ts';
import { listRefundsDue } from '../../../../src/finance/use-cases/refunds/list-refunds-due.ts';
import { readExportEnd } from '../../../../src/ledger/store/export.ts';
import { useChain } from '../../../support/devnet.ts';
import { signedTransfer } from '../../../support/permit2.ts';
import { payTo } from '../../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { expectIndependent, verifyIndependently } from '../../../support/independent.ts';
import { appendRefusals, exportTo, sealAll, testSigner } from '../../../support/log.ts';
import { sendInLongTransaction, transferToken } from '../../../support/onchain.ts';
import { temporaryFolder } from '../../../support/program.ts';
import { endOfPeriod } from '../../../support/reconcile.ts';
import { eventually } from '../../../support/wait.ts';
import { lossyRestore, passValidity, streamOf } from './support.ts';

const chain = useChain();
const second = testSigner.renamed(`${testSigner.name}/2`);

/** What the books say is to be refunded, by commodity. */
function refundsDueIn(events: readonly RecordedEvent[]): bigint[] {
  const keeper = new Bookkeeper(() => true);
  const balances = new Balances();
  for (const event of events) for (const move of keeper.post(event)?.moves ?? []) balances.post(move);
  return balances
    .list()
    .filter(({ account }) => account === 'Liabilities:RefundsDue')
    .map(({ atoms }) => atoms);
}

test('a recovered payment is to be refunded, in every report, and what was kept stays provable', async () => {
  const { database, lost, kept, start, run, config, recoverHere } = await lossyRestore(chain);
  const ledger = openLedger(database);
  const { last: keptSeq } = await readExportEnd(database.pool);
  await recoverHere(ledger);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const recovered = events.filter(({ type }) => type === 'payment_recovered');
  await projectToHead(ledger);
  const { rows: due } = await listRefundsDue(database.pool, 0, 10);
  expect(due.map(({ why, quote_digest }) => [why, quote_digest])).toEqual(
    recovered.map(({ stream }) => ['recovered', stream]),
  );
  expect(refundsDueIn(events)).toEqual(lost.map(({ payment }) => -BigInt(payment.accepted.amount)));
  const refund = await transferToken(chain.rpcUrl, {
    key: devnetKeys.payTo,
    asset: chain.token,
    to: signedTransfer(lost[0]!.payment).from as Hex,
    amount: BigInt(lost[0]!.payment.accepted.amount),
  });
  const to = await endOfPeriod(chain.rpcUrl);
  const order = { quoteDigest: streamOf(lost[0]!), transaction: refund, operator: 'ada' };
  const recorded = await recordRefund(
    ledger,
    { ...order, paymentNonce: undefined, isGoodwill: false },
    chainsAt(chain.rpcUrl),
  );
  expect(recorded).toMatchObject({ kind: 'recorded' });

  // the gateway starts under the log's new name, and what was kept is still provable
  const gateway = await start();
  await eventually(async () => {
    const { text } = await gateway.get('/log/checkpoint');
    const head = openCheckpoint(text, parseVerifierKey(second.verifierKeys[0]));
    expect(head.size).toBeGreaterThan(keptSeq);
  });
  const receipt = await gateway.get(`/x402/receipts/${streamOf(lost[1]!)}`);
  expect(receipt.json).toMatchObject({ state: 'settled', paid: true });
  expect((await gateway.get(`/x402/receipts/${kept.digest}`)).json).toMatchObject({ state: 'completed' });
  expect((await gateway.get(`/log/proof?quote_digest=${kept.digest}`)).json).toMatchObject({ pending: 0 });

  const period = ['--from', new Date(Date.now() - 3_600_000).toISOString(), '--to', to];
  await gateway.stop();
  const reconciled = await run('reconcile', ...period, '--config', config);
  expect(reconciled.code).toBe(0);
  expect(reconciled.stdout).toMatch(/refund_due +1/);
  const file = `${temporaryFolder()}/export.jsonl`;
  await exportTo(file, database);
  expectIndependent(await verifyIndependently(file, []), true);
});

// lets the chain's time pass, so it comes last of the tests that pay
test('a payment that a restored database has lost is found on the chain and recorded once', async () => {
  const { database, lost, start, recover } = await lossyRestore(chain);
  // what a stranger sends to a payee, with more logs than anybody would read, is searched as well
  await sendInLongTransaction(chain.rpcUrl, {
    address: chain.token,
    artifact: testToken,
    functionName: 'mint',
    args: [payTo, 1n],
  });
  await endOfPeriod(chain.rpcUrl);
  await expect(start()).rejects.toThrow(/events are missing.*tollbook recover/s);
  const before = await allEvents(database.db);

  const trial = await recover('--dry-run');
  expect(trial).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/Would be recorded.*\n.*Would be recorded/),
  });
  expect(await allEvents(database.db)).toHaveLength(before.length);

  const cutOff = await recover('--rpc', 'eip155:84532=http://127.0.0.1:1');
  expect(cutOff).toMatchObject({
    code: 2,
    stdout: expect.stringContaining(second.verifierKeys[0]),
    stderr: expect.stringMatching(/eip155:84532 was not searched: .*not finished/s),
  });
  // what has landed is recorded at once; until no authorization is valid any more, more may land
  const early = await recover();
  expect(early).toMatchObject({ code: 2, stderr: expect.stringMatching(/not finished/) });
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.find(({ type }) => type === 'ledger_recovered')?.data).toMatchObject({
    generation: 2,
    new_origin: second.name,
    kept_seq: before.length,
    lost_from: before.length + 1,
    reason: 'anchor_ahead',
    operator: 'ada',
  });
  const recovered = events.filter(({ type }) => type === 'payment_recovered');
  // the payments of the test before are on the same chain, and this ledger does not know them either
  expect(recovered.map(({ stream }) => stream)).toEqual(expect.arrayContaining(lost.map(streamOf)));
  expect(early.stdout.match(/Refund due/g)).toHaveLength(recovered.length);

  await passValidity(chain);
  expect(await recover()).toMatchObject({ code: 0 });
  expect(await recover()).toMatchObject({ code: 2, stderr: expect.stringMatching(/Nothing is wrong/) });

  expect(await allEvents(database.db)).toSatisfy(
    (all: readonly RecordedEvent[]) =>
      all.filter(({ type }) => type === 'payment_recovered').length === recovered.length,
  );
});

test('a recovery ends the halt that a gateway recorded when it noticed the loss, and only a recovery does', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 3);
  const restore = await backUp(database);
  const lane = openLane({ url: database.url, role: writerRole });
  onTestFinished(() => lane.close(0));
  const append = (on = lane) => on.append({ stream: newStream(), events: [refused()] });
  await append();
  await restore();
  await expect(append()).rejects.toThrow(/went back in time/);
  const halt = await eventually(async () => {
    const recorded = await readHalt(database.pool);
    if (!recorded) throw new Error('not recorded yet');
    return recorded;
  });
  expect(halt).toMatchObject({ knownSeq: 4, foundSeq: 3 });
  await sealAll(database);
  expect(await readHead(database.pool, testSigner.name)).toBeUndefined();

  const ledger = openLedger(database);
  const loss = (await findLoss(database.pool, [], halt))!;
  expect(loss).toMatchObject({ reason: 'went_back', keptSeq: 3, lostFrom: 4, lostTo: 4 });
  const order = { loss, sinceSecs: loss.sinceSecs ?? 0, operator: 'ada', signer: testSigner, after: 1 };
  expect(await beginRecovery(ledger, order)).toMatchObject({ data: { generation: 2, kept_seq: 3 } });
  expect(await readHalt(database.pool)).toBeUndefined();
  await appendRefusals(database, 2);
  await sealAll(database);
  expect(await readHead(database.pool, second.name)).toMatchObject({ size: 6 });
});

test('where events were recorded after the loss, nothing tells when it began: the operator has to say it', async () => {
  const database = await createDatabase();
  await appendRefusals(database, 9);
  const halt = { reason: 'it went back', knownSeq: 5, foundSeq: 9 };
  const elsewhere = { ...halt, foundSeq: undefined };
  expect(await findLoss(database.pool, [], elsewhere)).toMatchObject({ sinceSecs: undefined });
  expect(await findLoss(database.pool, [], halt)).toMatchObject({
    lostFrom: undefined,
    sinceSecs: undefined,
  });
});

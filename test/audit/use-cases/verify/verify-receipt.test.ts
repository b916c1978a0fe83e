import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { proofsJson } from '../../../../src/audit/http/proofs-json.ts';
import { openLogReader } from '../../../../src/audit/use-cases/log/log-reader.ts';
import { verifyReceipt } from '../../../../src/audit/use-cases/verify/verify-receipt.ts';
import { noteSigner } from '../../../../src/base/values/log/checkpoint.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { echo, startJobsSite } from '../../../support/jobs-site.ts';
import { appendAll, sealAll, testSigner, testVerifier } from '../../../support/log.ts';
import { hex32Of, paidJob } from '../../../support/synthetic-ledger.ts';
import { operatorOf } from '../../../support/operator.ts';
import { payFor } from '../../../support/payer.ts';
import { tollbook } from '../../../support/program.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();
const keyOf = (byte: number): string =>
  noteSigner('jobs.example/log', [Buffer.alloc(32, byte)]).verifierKeys[0];

test('a payment is proven by its receipt with the public key of the log alone, and neither an edited one nor hashes prove it', async () => {
  const site = await startJobsSite(chain, echo, { isDocumented: true });
  const { json: paid } = await payFor(site, '/x402/jobs/1/1', 'hello');
  const get = async (token?: string) =>
    (await site.get(`/x402/receipts/${paid.quote_digest}`, token ? { authorization: `Bearer ${token}` } : {}))
      .json;
  await eventually(async () => expect((await get()).log_proof?.proofs.length).toBeGreaterThan(0));
  const [open, full] = [await get(), await get(paid.receipt_token)];
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-receipt-'));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const verify = async (receipt: unknown, key = keyOf(0x2a)) => {
    const file = path.join(dir, 'receipt.json');
    writeFileSync(file, typeof receipt === 'string' ? receipt : JSON.stringify(receipt));
    const { code, stdout, stderr } = await tollbook(['verify', '--receipt', file, '--pubkey', key]);
    return [code, stdout + stderr] as const;
  };
  const edited = (change: (copy: typeof full) => void): unknown => {
    const copy = structuredClone(full);
    change(copy);
    return copy;
  };
  const { payer, amount, transaction } = full.payment;
  const proven = [
    0,
    expect.stringMatching(
      new RegExp(
        `\\(payment_settled\\) is in the log\n[^]*paid: ${amount} atoms .* by ${payer}, in transaction ${transaction}\nproven: jobs\\.example/log, \\d+ events`,
      ),
    ),
  ];
  expect(await verify(full)).toEqual(proven);
  const history = await site.get(
    `/audit/payments/${paid.quote_digest}`,
    await operatorOf(site.database, ['audit:read']),
  );
  expect(await verify(history.json)).toEqual(proven);
  const leaf = (copy: typeof full) => copy.log_proof.proofs[0];
  const other = Buffer.from(leaf(full).leaf_base64, 'base64').toString().replace('"payer"', '"Payer"');
  for (const [receipt, reason] of [
    [edited((copy) => (leaf(copy).seq += 1)), 'do not lead to the root'],
    [edited((copy) => (leaf(copy).hashes[0] = leaf(copy).leaf_hash)), 'do not lead to the root'],
    [edited((copy) => leaf(copy).hashes.pop()), 'do not lead to the root'],
    [
      edited((copy) => (leaf(copy).leaf_base64 = Buffer.from(other).toString('base64'))),
      'another one than the leaf',
    ],
    [edited((copy) => (copy.quote_digest = `0x${'1'.repeat(64)}`)), 'not of this receipt'],
    [
      edited((copy) => (copy.log_proof.checkpoint = copy.log_proof.checkpoint.replace(/\n\d+\n/, '\n99\n'))),
      'does not hold',
    ],
    [edited((copy) => (copy.log_proof = null)), 'has no proof yet'],
    [open, 'has only its hash'],
    [edited((copy) => (copy.payment.amount = '999999999')), 'its amount is'],
    [edited((copy) => (copy.payment.payer = `0x${'1'.repeat(40)}`)), 'its payer is'],
    [edited((copy) => (copy.payment.transaction = `0x${'1'.repeat(64)}`)), 'its transaction is'],
    [{ a: 1 }, 'neither of a receipt'],
  ] as const)
    expect(await verify(receipt)).toEqual([1, expect.stringContaining(reason)]);
  expect(await verify(full, keyOf(7))).toEqual([1, expect.stringContaining('signed by another key')]);
  expect(await verify('{')).toEqual([2, expect.stringContaining('is not JSON')]);
});

test('a payment that turned out not to have landed is not proven, and one in another transaction than was reported is, by that', async () => {
  const database = await createDatabase();
  const job = paidJob(1);
  const at = job.findIndex(({ event }) => event.type === 'payment_settled');
  const settled = job[at];
  if (settled?.event.type !== 'payment_settled') throw new Error('this job is not paid');
  const { stream, event } = settled;
  const { network, asset, payer, payment_nonce, amount, transaction } = event.data;
  const named = { network, asset, payer, payment_nonce };
  const elsewhere = hex32Of('another transaction');
  await appendAll(database, job.slice(0, at + 1));
  const verdictOf = async (shown: string) => {
    await sealAll(database);
    const proven = await openLogReader(database.pool, testSigner.name).proveStream(stream);
    if (!proven) throw new Error('nothing is proven');
    const payment = { network, asset, payer, amount, transaction: shown };
    const receipt = { quote_digest: stream, payment, log_proof: proofsJson(proven, 0, proven.leaves) };
    return verifyReceipt(receipt, testVerifier);
  };
  expect(await verdictOf(transaction)).toMatchObject({ kind: 'proven', payment: { transaction } });
  const place = {
    block_number: '7',
    block_hash: hex32Of('block 7'),
    block_time: 1_790_000_000,
    log_index: 0,
  };
  await appendAll(database, [
    { stream, event: { type: 'settlement_confirmed', data: { ...named, ...place, transaction: elsewhere } } },
  ]);
  expect(await verdictOf(elsewhere)).toMatchObject({ kind: 'proven', payment: { transaction: elsewhere } });
  expect(await verdictOf(transaction)).toMatchObject({ kind: 'not_proven' });
  const data = { ...named, transaction: elsewhere, reason: 'reorged', call: 'kept' } as const;
  await appendAll(database, [{ stream, event: { type: 'settlement_disproved', data } }]);
  expect(await verdictOf(elsewhere)).toMatchObject({
    kind: 'not_proven',
    reason: expect.stringContaining('did not land after all'),
  });
});

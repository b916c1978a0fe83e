import { createSecretKey, randomUUID } from 'node:crypto';
import { keccak256, stringToBytes } from 'viem/utils';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { privateKeyToAccount } from 'viem/accounts';
import { paidCallKey } from '../../../../src/payments/rules/payment.ts';
import { sha256 } from '../../../../src/base/values/sha256.ts';
import { quoteDigest, zeroAddress, zeroHash } from '../../../../src/payments/rules/quote.ts';
import { writeQuoteToken } from '../../../../src/payments/rules/quote-token.ts';
import { quoteTokenProof } from '../../../../src/payments/use-cases/receipt-keys.ts';
import type { Address, Hex } from '../../../../src/base/values/primitives.ts';
import { recordRefund } from '../../../../src/finance/use-cases/refunds/record-refund.ts';
import { beginRecovery } from '../../../../src/finance/use-cases/recovery/recover.ts';
import { readExportEnd } from '../../../../src/ledger/store/export.ts';
import { readTimeOf } from '../../../../src/ledger/store/recovery.ts';
import { readStream } from '../../../../src/ledger/store/streams.ts';
import { chainsAt, openLedger } from '../refunds/support.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { transferToken } from '../../../support/onchain.ts';
import { payTo, receiptKey } from '../../../support/gateway.ts';
import { header as paymentHeader, offerOf, payer } from '../../../support/payer.ts';
import { endOfPeriod } from '../../../support/reconcile.ts';
import { eventually } from '../../../support/wait.ts';
import { job, lossyRestore, redelivery, send, streamOf, type TakenPayment } from './support.ts';

const chain = useChain();
const stranger = privateKeyToAccount(devnetKeys.spare);

const refusedBecause = (detail: RegExp) => ({
  status: 409,
  json: { code: 'payment_recovered', details: [expect.stringMatching(detail)] },
});

const typesOf = async (database: TestDatabase, stream: string): Promise<string[]> =>
  (await readStream(database.pool, stream)).events.map(({ type }) => type);

test('a lost payment is never answered with 402, and is delivered only for a new signature of its payer', async () => {
  const bodies = ['asked for', 'refunded', 'raced', 'interrupted', 'bound'];
  const { database, lost, start, startUnanchored, recover, delivered } = await lossyRestore(chain, bodies);
  const [asked, refunded, raced, interrupted, bound] = lost as [
    TakenPayment,
    TakenPayment,
    TakenPayment,
    TakenPayment,
    TakenPayment,
  ];
  const ledger = openLedger(database);

  // before the recovery, and while it searches: nothing is claimed, and nothing is offered for a second payment
  const unaware = await startUnanchored();
  const unrecorded = { status: 503, json: { code: 'payment_unrecorded' } };
  expect(await send(unaware, asked.payment, asked.body)).toMatchObject(unrecorded);
  const { last: keptSeq } = await readExportEnd(database.pool);
  const sinceSecs = (await readTimeOf(database.pool, keptSeq)) ?? 0;
  const unknown = { anchored: undefined, lostFrom: undefined, lostTo: undefined, sinceSecs };
  const loss = { ...unknown, reason: 'forced', keptSeq };
  await beginRecovery(ledger, { loss, sinceSecs, operator: 'ada', signer: undefined, after: 1 });
  await unaware.stop();
  const searching = await startUnanchored();
  const quoted = offerOf(await searching.post(job, { body: 'a body of a stranger' }));
  const stolen = { ...asked.payment, accepted: quoted.accepts[0]! };
  expect(await send(searching, stolen, 'a body of a stranger')).toMatchObject(unrecorded);
  await searching.stop();
  expect((await recover()).stdout.match(/Refund due/g)).toHaveLength(5);

  const gateway = await start();
  const refusedWith = async (
    body: string,
    headers: Record<string, string>,
    detail: RegExp,
  ): Promise<void> => {
    const answer = await send(gateway, asked.payment, body, headers);
    expect(answer).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
    expect(answer.json.details?.join()).toMatch(detail);
  };
  await refusedWith(asked.body, {}, /is missing/);
  await refusedWith('another', await redelivery(asked, asked.body), /not the payer's/);
  await refusedWith(asked.body, await redelivery(asked, asked.body, stranger), /not the payer's/);
  await refusedWith(asked.body, await redelivery(refunded, asked.body), /not the payer's/);
  await refusedWith(asked.body, { 'x-net-redelivery-sig': '0x' }, /not a signature/);
  expect(delivered()).toEqual([]);

  const accepted = await send(gateway, asked.payment, asked.body, await redelivery(asked, asked.body));
  expect(accepted).toMatchObject({ status: 202, json: { quote_digest: streamOf(asked), service_id: 1 } });
  await eventually(async () => expect(await typesOf(database, streamOf(asked))).toContain('completed'));
  expect(delivered().map(({ body }) => body.toString())).toEqual([asked.body]);
  const again = await send(gateway, asked.payment, asked.body);
  expect(again).toMatchObject({ status: 202, json: { call_id: accepted.json.call_id } });
  const ofStranger = { ...asked.payment, accepted: { ...asked.payment.accepted, extra: {} } };
  expect(await send(gateway, ofStranger, asked.body)).toMatchObject({ text: '{"status":"accepted"}' });
  const signed = await redelivery(asked, asked.body);
  expect(await send(gateway, ofStranger, asked.body, signed)).toMatchObject({ json: again.json });
  expect(await send(gateway, asked.payment, 'another', await redelivery(asked, 'another'))).toMatchObject({
    status: 409,
    json: { code: 'payment_replay' },
  });

  // a quote that was for one payer or body alone is delivered only to them: the ledger has it, or the address shows it
  const quote = async (terms: { requester?: Address; inputsHash?: Hex }) => {
    const open = { serviceId: 1, jobIndex: 0, requester: zeroAddress, inputsHash: zeroHash };
    const issued = await gateway.quotes?.issue({ ...open, ...terms });
    if (issued?.kind !== 'issued') throw new Error('no quote was issued');
    return issued;
  };
  const inputsHash = keccak256(stringToBytes(bound.body));
  const requester = payer.address.toLowerCase() as Address;
  const mine = await quote({ requester, inputsHash });
  const others = await quote({ requester: stranger.address });
  const sendFor = async (digest: Hex, { address = job, body = bound.body } = {}) => {
    const { accepted: terms } = bound.payment;
    const extra = { ...terms.extra, quoteDigest: digest };
    const payment = { ...bound.payment, accepted: { ...terms, extra } };
    const signature = await redelivery({ ...bound, payment }, body);
    return gateway.post(address, { body, headers: { ...paymentHeader(payment), ...signature } });
  };
  expect(await sendFor(others.digest)).toMatchObject(refusedBecause(/only for another payer/));
  expect(await sendFor(mine.digest, { body: 'y' })).toMatchObject(refusedBecause(/only for another body/));
  const forgotten = { ...mine.quote, salt: sha256('a quote that was lost') };
  const digest = quoteDigest(forgotten);
  const proof = quoteTokenProof([createSecretKey(receiptKey, 'utf8')], digest);
  const address = `${job}?quote=${writeQuoteToken(forgotten, proof)}`;
  expect(await sendFor(digest, { address, body: 'y' })).toMatchObject(
    refusedBecause(/only for another body/),
  );
  expect(await sendFor(digest, { address })).toMatchObject({ status: 202 });
  expect((await readStream(database.pool, streamOf(bound))).events[1]).toMatchObject({
    type: 'redelivery_requested',
    data: { quote_digest: digest, body_keccak256: inputsHash },
  });

  // a payment is refunded or delivered, never both
  const giveBack = async ({ payment: { accepted: terms } }: TakenPayment): Promise<Hex> =>
    transferToken(chain.rpcUrl, {
      key: devnetKeys.payTo,
      asset: terms.asset,
      to: payer.address.toLowerCase() as Hex,
      amount: BigInt(terms.amount),
    });
  const transactions = [await giveBack(asked), await giveBack(refunded), await giveBack(raced)] as const;
  await endOfPeriod(chain.rpcUrl);
  const record = (taken: TakenPayment, transaction: Hex) =>
    recordRefund(
      ledger,
      {
        quoteDigest: streamOf(taken),
        transaction,
        paymentNonce: undefined,
        operator: 'ada',
        isGoodwill: false,
      },
      chainsAt(chain.rpcUrl),
    );
  expect(await record(asked, transactions[0])).toMatchObject({ code: 'delivered' });
  expect(await record(refunded, transactions[1])).toMatchObject({ kind: 'recorded' });
  const late = await send(
    gateway,
    refunded.payment,
    refunded.body,
    await redelivery(refunded, refunded.body),
  );
  expect(late).toMatchObject({ status: 409, json: { code: 'payment_recovered' } });
  const header = await redelivery(raced, raced.body);
  await Promise.all([
    record(raced, transactions[2]),
    ...[1, 2].map(() => send(gateway, raced.payment, raced.body, header)),
  ]);
  const ends = (await typesOf(database, streamOf(raced))).filter((type) =>
    ['refunded', 'redelivery_requested'].includes(type),
  );
  expect(ends).toHaveLength(1);

  // a process that ends between the two appends of a delivery leaves the call to the resolver
  const { events } = await readStream(database.pool, streamOf(interrupted));
  const [found] = events;
  if (found?.type !== 'payment_recovered') throw new Error('it was not recovered');
  const { network, asset, payment_nonce, symbol } = found.data;
  await ledger.lane.append({
    stream: streamOf(interrupted),
    expect: 1,
    events: [
      {
        type: 'redelivery_requested',
        data: {
          network,
          asset,
          payer: found.data.payer,
          payment_nonce,
          service_id: 1,
          job_index: 0,
          request_id: randomUUID(),
          binding: sha256('binding'),
          body_sha256: sha256(interrupted.body),
          body_bytes: interrupted.body.length,
          x402_version: 2,
          signature: '0x',
        },
      },
    ],
    call: {
      op: 'add',
      serviceId: 1,
      jobIndex: 0,
      bodyId: randomUUID(),
      body: { contentType: 'text/plain', bytes: Buffer.from(interrupted.body) },
      network,
      asset: chain.token,
      symbol,
      caller: undefined,
      // a recovered payment's stream is named by its key
      payment: streamOf(interrupted),
      idempotencyKey: paidCallKey({
        payment: streamOf(interrupted),
        job: { serviceId: 1, jobIndex: 0 },
        bodySha256: sha256(interrupted.body),
      }),
      delayMs: 0,
    },
  });
  await eventually(async () => expect(await typesOf(database, streamOf(interrupted))).toContain('completed'));
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a redelivery has the idempotency key of the lost call for the same body, and another one for another body', async () => {
  const { lost, start, recover, runner, delivered } = await lossyRestore(chain, ['same', 'lost']);
  const [same, other] = lost as [TakenPayment, TakenPayment];
  await recover();
  const gateway = await start();
  const lostKeys = new Map(runner.deliveries.map(({ body, id }) => [body.toString(), id]));
  for (const [taken, body] of [
    [same, same.body],
    [other, 'another'],
  ] as const)
    expect(await send(gateway, taken.payment, body, await redelivery(taken, body))).toMatchObject({
      status: 202,
    });
  await eventually(() => expect(delivered()).toHaveLength(2));
  const keys = new Map(delivered().map(({ body, id }) => [body.toString(), id]));
  expect(keys.get(same.body)).toBe(lostKeys.get(same.body));
  expect([...lostKeys.values()]).not.toContain(keys.get('another'));
});

test('a lost payment whose quote authenticates itself is never charged again, and once the loss is known it takes a new signature', async () => {
  const keyed = {
    top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
    env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
  };
  const { database, lost, startUnanchored, recover, delivered } = await lossyRestore(
    chain,
    ['sent again', 'asked for'],
    keyed,
  );
  const [again, asked] = lost as [TakenPayment, TakenPayment];
  const { last: keptBefore } = await readExportEnd(database.pool);
  const sinceSecs = (await readTimeOf(database.pool, keptBefore)) ?? 0;
  const before = [await chain.balance(payTo), await chain.balance(payTo, chain.secondToken)];

  // A gateway that does not know of the loss: the echo of the quote shows that its offer's recipient sends it.
  const unaware = await startUnanchored();
  const { quote: _, ...shown } = asked.payment.accepted.extra;
  const stripped = { ...asked.payment, accepted: { ...asked.payment.accepted, extra: shown } };
  const unrecorded = { status: 503, json: { code: 'payment_unrecorded' } };
  expect(await send(unaware, stripped, asked.body)).toMatchObject(unrecorded);
  const copies = await Promise.all([1, 2].map(() => send(unaware, again.payment, again.body)));
  for (const copy of copies)
    expect(copy).toMatchObject({ status: 202, json: { quote_digest: again.digest } });
  expect(await send(unaware, again.payment, 'another')).toMatchObject({
    status: 409,
    json: { code: 'payment_replay' },
  });
  await eventually(async () => expect(await typesOf(database, again.digest)).toContain('completed'));
  expect(await typesOf(database, again.digest)).toEqual([
    'quote_issued',
    'payment_verified',
    'settlement_started',
    'payment_settled',
    'enqueued',
    'delivered',
    'completed',
  ]);
  expect(delivered().map(({ body }) => body.toString())).toEqual([again.body]);
  await unaware.stop();

  // the recovery begins another generation of the log: no quote of the one before authenticates itself
  const ledger = openLedger(database);
  const { last: keptSeq } = await readExportEnd(database.pool);
  const unknown = { anchored: undefined, lostFrom: undefined, lostTo: undefined, sinceSecs };
  const loss = { ...unknown, reason: 'forced', keptSeq };
  await beginRecovery(ledger, { loss, sinceSecs, operator: 'ada', signer: undefined, after: 1 });
  const searching = await startUnanchored();
  expect(await send(searching, asked.payment, asked.body)).toMatchObject(unrecorded);
  await searching.stop();
  // it finds the payments of the other test as well
  expect((await recover()).stdout).toContain('Refund due');
  const gateway = await startUnanchored();
  expect(await send(gateway, asked.payment, asked.body)).toMatchObject({
    status: 409,
    json: { code: 'payment_recovered' },
  });
  const accepted = await send(gateway, asked.payment, asked.body, await redelivery(asked, asked.body));
  expect(accepted).toMatchObject({ status: 202, json: { quote_digest: streamOf(asked) } });
  await eventually(async () => expect(await typesOf(database, streamOf(asked))).toContain('completed'));
  expect(delivered().map(({ body }) => body.toString())).toEqual([again.body, asked.body]);

  expect([await chain.balance(payTo), await chain.balance(payTo, chain.secondToken)]).toEqual(before);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

import { privateKeyToAccount } from 'viem/accounts';
import { expect, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../../src/devnet/accounts.ts';
import { facilitatorMarginSecs } from '../../../src/base/values/facilitator-margin.ts';
import type { Claim } from '../../../src/ledger/store/append-batch.ts';
import { callerHeaders, restrictedJobs } from '../../support/caller.ts';
import { clockAt, stoppedDatabase } from '../../support/append-ways.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { newStream, refused } from '../../support/events.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import {
  type Answer,
  payTo,
  startTestGateway,
  type TestGateway,
  type TestGatewayOptions,
} from '../../support/gateway.ts';
import { expectSoundLedger } from '../../support/invariants.ts';
import { header, offerOf, quoteAndSign, signOffer, v1Header } from '../../support/payer.ts';
import { appendsWait, holdLane, holdOpen } from './lane-lock.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const price = 3_264_000n;

const ttlSecs = (secs: number): string =>
  `quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"\nquote_ttl_secs = ${secs}`;
/** With the time limit of a settlement that gateways have by default. */
const settleMarginSecs = facilitatorMarginSecs + 60;

/** Two gateways of one ledger, whose quotes are valid for a minute. */
async function twoGateways(
  database: TestDatabase,
  changes: Pick<TestGatewayOptions, 'change' | 'jobs' | 'top'> = {},
): Promise<[TestGateway, TestGateway]> {
  const options = {
    database,
    chain,
    top: ttlSecs(60),
    env: { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' },
    ...changes,
  };
  return [await startTestGateway(options), await startTestGateway(options)];
}

/**
 * The answers to a request and, after a time, its repetition to the other gateway, both of which wait for the ledger until it is released:
 * the repetition's first.
 */
async function held(
  database: TestDatabase,
  [first, second]: readonly [TestGateway, TestGateway],
  send: (gateway: TestGateway) => Promise<Answer>,
  { secs, release }: { readonly secs: number; readonly release: () => Promise<unknown> },
): Promise<[again: Answer, started: Answer]> {
  const started = send(first);
  await appendsWait(database, 1);
  await database.moveClock(secs);
  const sentAgain = send(second);
  await appendsWait(database, 2);
  await release();
  return [await sentAgain, await started];
}

/** No settlement was started, and the payee has what it had before. */
async function expectUnsettled(database: TestDatabase, before: bigint): Promise<void> {
  expect((await chain.balance(payTo)) - before).toBe(0n);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'settlement_started')).toEqual([]);
}

const atTwicePrice = (text: string): string => text.replaceAll('"1000000000000000"', '"2000000000000000"');

test('a payment whose start waits for the ledger past the end of its quote is refused by every gateway, and never settled', async () => {
  const database = await createDatabase();
  const gateways = await twoGateways(database);
  const payment = await quoteAndSign(gateways[0], job, 'x');
  const before = await chain.balance(payTo);
  const release = await holdLane(database);
  const send = ({ post }: TestGateway) => post(job, { body: 'x', headers: header(payment) });
  for (const answer of await held(database, gateways, send, { secs: 61, release }))
    expect(answer).toMatchObject({ status: 402, json: { code: 'quote_expired' } });
  await expectUnsettled(database, before);
});

test.each([
  {
    what: 'its authorization',
    path: job,
    // facilitators settle nothing in the last seconds
    validSecs: settleMarginSecs + 20,
    callerSecs: undefined,
    code: 'payment_invalid',
  },
  {
    what: 'the signature of its caller',
    path: '/x402/jobs/1/1',
    validSecs: 200,
    callerSecs: 20,
    code: 'signature_expired',
  },
])(
  'a payment whose start waits for the ledger past the end of $what is not settled either',
  async ({ path, validSecs, callerSecs, code }) => {
    const database = await createDatabase();
    const options = { jobs: restrictedJobs(chain), top: ttlSecs(300) };
    const gateways = await twoGateways(database, options);
    const nowSecs = Math.floor(Date.now() / 1_000);
    const account = privateKeyToAccount(devnetKeys.permittedCaller);
    const signed = { validBefore: String(nowSecs + validSecs) };
    const payment = await quoteAndSign(
      gateways[0],
      path,
      'x',
      path === job ? { account, signed } : { signed },
    );
    const caller = callerSecs === undefined ? {} : await callerHeaders('x', { expiry: nowSecs + callerSecs });
    const before = await chain.balance(payTo);
    const release = await holdLane(database);
    const headers = { ...header(payment), ...caller };
    const send = ({ post }: TestGateway) => post(path, { body: 'x', headers });
    for (const answer of await held(database, gateways, send, { secs: 30, release }))
      expect(answer.json).toMatchObject({ code });
    await expectUnsettled(database, before);
  },
);

test('a payment whose start was decided in time and is committed late is never refused meanwhile', async () => {
  const database = await createDatabase();
  // refusals are only counted, as while strangers send many: none waits for its own append
  await database.asOwner((owner) =>
    owner.query(
      `create or replace function tollbook.take_event_allowance(p_kind text, p_wanted int, p_per_sec int, p_most int) returns int
       language sql as 'select 0'`,
    ),
  );
  const gateways = await twoGateways(database);
  const payment = await quoteAndSign(gateways[0], job, 'x');
  // a gateway that has seen the quote reads the ledger first
  const forged = { ...payment, payload: { ...payment.payload, signature: `0x${'1b'.repeat(65)}` } };
  expect((await gateways[1].post(job, { body: 'x', headers: header(forged) })).status).toBe(402);
  const before = await chain.balance(payTo);
  await database.asOwner((owner) =>
    owner.query(
      `create function public.wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
       create constraint trigger wait after insert on tollbook.event deferrable initially deferred
         for each row when (new.type = 'settlement_started') execute function public.wait()`,
    ),
  );
  const release = await holdOpen(database, 'select pg_advisory_xact_lock(1)');
  const send = ({ post }: TestGateway) => post(job, { body: 'x', headers: header(payment) });
  const answers = await held(database, gateways, send, { secs: 61, release });
  expect(answers.map(({ status }) => status)).toEqual([202, 202]);
  expect((await chain.balance(payTo)) - before).toBe(price);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a version 1 payment of an earlier price whose start waits for the ledger past the end of that price is never settled', async () => {
  const database = await createDatabase();
  const [earlier, other] = await twoGateways(database);
  const { payload } = await signOffer(offerOf(await earlier.post(job, { body: 'x' })));
  await Promise.all([earlier.stop(), other.stop()]);
  const gateways = await twoGateways(database, { change: atTwicePrice });
  const before = await chain.balance(payTo);
  const headers = v1Header({ payload });
  const send = ({ post }: TestGateway) => post(job, { body: 'x', headers });
  const release = await holdLane(database);
  for (const answer of await held(database, gateways, send, { secs: 75, release }))
    expect(answer).toMatchObject({ status: 402, json: { code: 'payment_invalid' } });
  expect((await chain.balance(payTo)) - before).toBe(0n);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

const invalid = { isValid: false, invalidReason: 'insufficient_funds' };

test.each([
  {
    what: 'does not sell the job any more',
    change: (text: string) => text.replace('"public_paid"', '"disabled"'),
    verdict: {},
    status: 403,
    code: 'x402_disabled',
  },
  {
    what: 'has a facilitator that reports a payer without money',
    change: undefined,
    verdict: invalid,
    status: 402,
    code: 'payment_invalid',
  },
])(
  'a request that a gateway has refused because it $what is not started later by another gateway that has a slower copy of it, and leaves its quote to another payment',
  async ({ change, verdict, status, code }) => {
    const database = await createDatabase();
    const start = async (config?: (text: string) => string) => {
      const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
      const options = { database, chain, facilitatorUrl: proxy.url, top: ttlSecs(300) };
      const env = { QUOTE_KEY: 'the-key-of-quotes-of-the-test-gateway' };
      return {
        proxy,
        gateway: await startTestGateway({ ...options, env, ...(config && { change: config }) }),
      };
    };
    const [refusing, slow] = [await start(change), await start()];
    refusing.proxy.faults.verify = { change: (answer) => ({ ...answer, ...verdict }) };
    const offer = offerOf(await slow.gateway.post(job, { body: 'x' }));
    const payment = await signOffer(offer);
    const send = ({ gateway }: typeof slow) => gateway.post(job, { body: 'x', headers: header(payment) });
    const before = await chain.balance(payTo);
    const { promise: isVerifying, resolve: verifies } = Promise.withResolvers<void>();
    const { promise: isRefused, resolve: goOn } = Promise.withResolvers<void>();
    slow.proxy.faults.verify = {
      change: async (answer) => {
        verifies();
        await isRefused;
        return answer;
      },
    };
    const slowCopy = send(slow);
    await isVerifying;
    expect(await send(refusing)).toMatchObject({ status, json: { code } });
    goOn();
    const lost = { status: 402, json: { code: 'payment_invalid', reason: 'request_refused' } };
    expect(await slowCopy).toMatchObject(lost);
    expect(await send(slow)).toMatchObject(lost);
    expect((await chain.balance(payTo)) - before).toBe(0n);
    const anew = await slow.gateway.post(job, { body: 'x', headers: header(await signOffer(offer)) });
    expect(anew.status).toBe(202);
    expect((await chain.balance(payTo)) - before).toBe(price);
    const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
    expect(events.filter(({ type }) => type === 'settlement_started')).toHaveLength(1);
  },
);

const claim = (key: string): Claim => ({ kind: 'transfer', owner: '', scope: '', key, binding: 'mine' });

const request = 'ab'.repeat(16);

test('for ten minutes after an append has refused its request a payment cannot start, by either path of the lane', async () => {
  const database = await stoppedDatabase();
  const lane = laneOn(database);
  onTestFinished(() => lane.close());
  const append = async (of: object): Promise<string[]> => {
    // a command that frees a claim is always decided
    const ways = [of, { ...of, freed: [claim('a')] }];
    const appended = ways.map((way) => lane.append({ stream: newStream(), events: [refused()], ...way }));
    return (await Promise.all(appended)).map(({ outcome }) => outcome);
  };
  const starts = () => append({ unlessRefused: request });
  expect(await starts()).toEqual(['ok', 'ok']);
  expect(await append({ refuses: request })).toEqual(['ok', 'ok']);
  expect(await starts()).toEqual(['request_refused', 'request_refused']);
  expect(await append({ unlessRefused: 'cd'.repeat(16) })).toEqual(['ok', 'ok']);
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:09:59Z')));
  expect(await starts()).toEqual(['request_refused', 'request_refused']);
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:10:01Z')));
  expect(await starts()).toEqual(['ok', 'ok']);
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:21:00Z')));
  await database.pool.query('select tollbook.prune_short_lived(100)');
  const { rowCount } = await database.pool.query('select from tollbook.refused_request');
  expect(rowCount).toBe(0);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a command is stale from its end on, by the clock of the database, whichever way its batch is written', async () => {
  const database = await stoppedDatabase();
  const lane = laneOn(database);
  onTestFinished(() => lane.close());
  const endsAt = Date.parse('2026-11-22T12:00:01Z') / 1_000;
  const append = async (claims: Claim[]): Promise<string[]> => {
    // a command that frees a claim is always decided
    const ways = [{ claims }, { freed: claims }];
    const appended = ways.map((way) =>
      lane.append({ stream: newStream(), endsAt, events: [refused()], ...way }),
    );
    return (await Promise.all(appended)).map(({ outcome }) => outcome);
  };
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:00:00.999Z')));
  expect(await append([claim('a')])).toEqual(['ok', 'ok']);
  await database.asOwner((owner) => owner.query(clockAt('2026-11-22T12:00:01Z')));
  expect(await append([claim('b')])).toEqual(['stale', 'stale']);
  // a claim that is taken says more
  expect(await append([claim('a')])).toEqual(['same', 'stale']);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events).toHaveLength(2);
});

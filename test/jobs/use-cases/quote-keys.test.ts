import { randomBytes } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { type QuoteRealm, quoteKeysOf, writeQuoteEcho } from '../../../src/payments/rules/quote-echo.ts';
import {
  type Quote,
  quoteDigest,
  type SettlementOption,
  zeroAddress,
  zeroHash,
} from '../../../src/payments/rules/quote.ts';
import { offersV2Text, offerTextsV2 } from '../../../src/payments/rules/x402.ts';
import { offerSecret, receiptKeysOf } from '../../../src/payments/use-cases/receipt-keys.ts';
import { revokeQuotes } from '../../../src/jobs/use-cases/revoke-quotes.ts';
import { writerRole } from '../../../src/ledger/store/database.ts';
import { readLedgerId } from '../../../src/ledger/store/secrets.ts';
import { laneOn, databaseWithLane } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { startFacilitatorProxy } from '../../support/facilitator-proxy.ts';
import {
  payTo,
  receiptKey,
  startTestGateway,
  testConfig,
  type TestGatewayOptions,
} from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { header, type Offer, offerOf, signOffer } from '../../support/payer.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const key = 'the-key-of-quotes-of-the-test-gateway';
const withKey = {
  top: 'quote_key = "env:QUOTE_KEY"\npublic_url = "http://jobs.example"',
  env: { QUOTE_KEY: key },
};
const keyed = (database: TestDatabase, options: Partial<TestGatewayOptions> = {}) =>
  startTestGateway({ database, chain, ...withKey, ...options });
const nowSecs = (): number => Math.floor(Date.now() / 1_000);

interface Minted {
  readonly quote?: Partial<Quote>;
  readonly option?: Partial<SettlementOption>;
  readonly realm?: Partial<QuoteRealm>;
  readonly key?: string;
}

/** The offer of a quote that no ledger has, as a gateway with these keys makes it. */
async function mint(database: TestDatabase, minted: Minted = {}): Promise<Offer & { digest: string }> {
  const options = [chain.token, chain.secondToken].map((asset, index): SettlementOption => ({
    network: 'eip155:84532',
    transferMethod: 'eip3009',
    asset,
    symbol: ['USDC', 'EURC'][index] ?? '',
    decimals: 6,
    amount: 3_264_000n,
    payTo,
    eip712Name: ['USD Coin', 'Euro Coin'][index] ?? '',
    eip712Version: '2',
    ...minted.option,
  }));
  const quote: Quote = {
    serviceId: 1,
    jobIndex: 0,
    priceWei: 10n ** 15n,
    options,
    requester: zeroAddress,
    inputsHash: zeroHash,
    issuedAt: nowSecs(),
    expiresAt: nowSecs() + 300,
    salt: `0x${randomBytes(32).toString('hex')}`,
    isSummarised: false,
    ...minted.quote,
  };
  const realm: QuoteRealm = {
    ledgerId: await readLedgerId(database.db),
    generation: 1,
    lane: 1,
    origin: 'http://jobs.example',
    ...minted.realm,
  };
  const keys = quoteKeysOf([minted.key ?? key]);
  const digest = quoteDigest(quote);
  const secret = offerSecret(receiptKeysOf([receiptKey], Buffer.alloc(0)), digest);
  const echoes = options.map((option) => writeQuoteEcho(keys, realm, quote, digest, option));
  const accepts = offersV2Text(offerTextsV2(options, 300), { digest, secret, echoes });
  return {
    x402Version: 2,
    error: '',
    resource: { url: '' },
    accepts: JSON.parse(accepts) as Offer['accepts'],
    digest,
  };
}

/** When the quote of an offer was issued, in Unix seconds. */
function offerIssuedAt({ accepts: [first] }: Offer): number {
  const echo = first?.extra['quote'] as unknown as { readonly issuedAt: number } | undefined;
  if (!echo) throw new Error('the offer has no quote');
  return echo.issuedAt;
}

const eventsOf = async (database: TestDatabase, digest: string) =>
  (await allEvents(database.db)).filter(({ stream }) => stream === digest).map(({ type }) => type);

test('a payment of a quote that is not stored is settled once, and its start records the quote first', async () => {
  const database = await createDatabase();
  const gateway = await keyed(database);
  const before = await chain.balance(payTo);
  const { digest, ...offer } = await mint(database);
  const headers = header(await signOffer(offer, { option: 1 }));
  const send = () => gateway.post(job, { body: 'x', headers });
  const euros = await chain.balance(payTo, chain.secondToken);
  const copies = await Promise.all([send(), send(), send()]);
  for (const copy of copies) expect(copy).toMatchObject({ status: 202, json: { quote_digest: digest } });
  expect(await send()).toMatchObject({ status: 202, json: { receipt_token: expect.any(String) } });
  expect((await gateway.post(job, { body: 'y', headers })).json.code).toBe('payment_replay');
  expect((await chain.balance(payTo, chain.secondToken)) - euros).toBe(3_264_000n);
  expect(await chain.balance(payTo)).toBe(before);
  expect((await eventsOf(database, digest)).slice(0, 3)).toEqual([
    'quote_issued',
    'payment_verified',
    'settlement_started',
  ]);
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ quoted: 1, accepted: 1 });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('of two payments of one quote that is not stored, one is charged', async () => {
  const database = await createDatabase();
  const gateway = await keyed(database);
  const other = await keyed(database);
  const before = await chain.balance(payTo);
  const { digest: _, ...offer } = await mint(database);
  const [one, two] = [await signOffer(offer), await signOffer(offer)];
  const answers = await Promise.all([
    gateway.post(job, { body: 'x', headers: header(one) }),
    other.post(job, { body: 'x', headers: header(two) }),
  ]);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202, 409]));
  expect(answers.find(({ status }) => status === 409)?.json.code).toBe('quote_in_use');
  expect((await chain.balance(payTo)) - before).toBe(3_264_000n);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a quote that does not authenticate itself and is not stored buys nothing', async () => {
  const database = await createDatabase();
  const gateway = await keyed(database);
  const before = await chain.balance(payTo);
  const past = nowSecs() - 600;
  const bad: Record<string, Minted> = {
    // what else a quote must say is in test/payments/rules/quote-echo.test.ts
    'of another key': { key: 'a-key-of-quotes-that-no-gateway-has--' },
    'of another ledger': { realm: { ledgerId: '00' } },
    'of another job': { quote: { jobIndex: 1 } },
    expired: { quote: { issuedAt: past, expiresAt: past + 300 } },
  };
  const codes: Record<string, unknown> = {};
  const send = async (name: string, payment: unknown) => {
    const { status, json } = await gateway.post(job, { body: 'x', headers: header(payment) });
    codes[name] = `${status} ${json.reason}`;
  };
  for (const [name, minted] of Object.entries(bad)) {
    const { digest: _, ...offer } = await mint(database, minted);
    await send(name, await signOffer(offer));
  }
  const { digest: _, ...offer } = await mint(database);
  const [first] = offer.accepts;
  if (!first) throw new Error('no offer');
  const cheap = { ...offer, accepts: [{ ...first, amount: '1' }] };
  await send('at another amount', await signOffer(cheap));
  const quote = first.extra['quote'] as unknown as Record<string, unknown>;
  const changed = (change: Record<string, unknown>) =>
    signOffer({
      ...offer,
      accepts: [{ ...first, extra: { ...first.extra, quote: { ...quote, ...change } as never } }],
    });
  await send('with a forged MAC', await changed({ mac: randomBytes(32).toString('base64url') }));
  const unknown = '402 unknown_quote';
  expect(codes).toEqual({
    ...Object.fromEntries(Object.keys(codes).map((name) => [name, unknown])),
    expired: '402 quote_expired',
  });
  expect(Object.keys(codes)).toHaveLength(6);
  expect(await chain.balance(payTo)).toBe(before);
  expect((await allEvents(database.db)).filter(({ type }) => type === 'settlement_started')).toEqual([]);
});

test('a quote keeps its price at a gateway with other prices and with its key as the second one, until the key is dropped', async () => {
  const database = await createDatabase();
  const gateway = await keyed(database);
  const dear = {
    jobs: '[job_prices.1]\n0 = "5000000000000000"\n[[job_policies]]\nservice_id = 1\njob_index = 0\ninvocation_mode = "public_paid"',
    top: withKey.top.replace('"env:QUOTE_KEY"', '["env:QUOTE_KEY", "env:OLD_KEY"]'),
    env: { QUOTE_KEY: 'the-next-key-of-quotes-of-this-gateway', OLD_KEY: key },
  };
  const rotated = await keyed(database, dear);
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const paid = await rotated.post(job, { body: 'x', headers: header(await signOffer(offer)) });
  expect(paid).toMatchObject({ status: 202, json: { payment: { amount: '3264000' } } });
  const { digest: _, ...unstored } = await mint(database);
  const again = await rotated.post(job, { body: 'x', headers: header(await signOffer(unstored)) });
  expect(again).toMatchObject({ status: 202, json: { payment: { amount: '3264000' } } });

  await rotated.reload(await testConfig({ database, chain, ...dear, top: withKey.top }));
  const { digest: __, ...late } = await mint(database);
  const refused = await rotated.post(job, { body: 'x', headers: header(await signOffer(late)) });
  expect(refused).toMatchObject({ status: 402, json: { reason: 'unknown_quote' } });
});

test('an offer is paid on its own terms, and its quote is recorded once whether or not it is stored by then', async () => {
  const database = await createDatabase();
  const gateway = await keyed(database);
  const pay = async () => {
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    const payment = await signOffer(offer);
    return gateway.post(job, { body: 'x', headers: header(payment) });
  };
  const answers = await Promise.all(Array.from({ length: 12 }, pay));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 202));
  expect((await gateway.get('/x402/stats')).json.counters).toMatchObject({ quoted: 12, accepted: 12 });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('a quote that is revoked buys nothing in any gateway, even while its payment is being verified', async () => {
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const gateway = await keyed(database, { facilitatorUrl: proxy.url });
  const before = await chain.balance(payTo);
  const lane = laneOn(database);
  onTestFinished(() => lane.close());
  const stored = offerOf(await gateway.post(job, { body: 'x' }));
  const { digest, ...unstored } = await mint(database);
  const issuedBySecs = nowSecs();
  await eventually(() => expect(nowSecs()).toBeGreaterThan(issuedBySecs));
  const later = await eventually(async () => {
    const offer = offerOf(await gateway.post(job, { body: 'x' }));
    expect(offerIssuedAt(offer)).toBeGreaterThan(issuedBySecs);
    return offer;
  });
  const revoke = (beforeSecs: number) => revokeQuotes({ ...database, lane }, { beforeSecs, operator: 'ada' });
  // the clock may have ticked since it was issued
  const revokedAt = offerIssuedAt(later);
  // after the look-up of the payment and before its start
  proxy.faults.verify = {
    change: async (answer) => {
      await revoke(revokedAt);
      return answer;
    },
  };
  const racing = await gateway.post(job, { body: 'x', headers: header(await signOffer(unstored)) });
  expect(racing).toMatchObject({ status: 402, json: { code: 'quote_expired', reason: 'quote_revoked' } });
  const refused = await gateway.post(job, { body: 'x', headers: header(await signOffer(stored)) });
  expect(refused).toMatchObject({ status: 402, json: { code: 'quote_expired', reason: 'quote_revoked' } });
  expect(await eventsOf(database, digest)).toEqual([]);
  expect(await chain.balance(payTo)).toBe(before);
  expect(await revoke(revokedAt - 10)).toEqual({ kind: 'revoked_before', beforeSecs: revokedAt });
  expect(await revoke(revokedAt + 3_600)).toEqual({ kind: 'in_future' });
  const paid = await gateway.post(job, { body: 'x', headers: header(await signOffer(later)) });
  expect(paid.status).toBe(202);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

async function mayReadClaims(database: TestDatabase, isAllowed: boolean): Promise<void> {
  const change = isAllowed ? 'grant select on tollbook.claim to' : 'revoke select on tollbook.claim from';
  await database.asOwner((owner) => owner.query(`${change} ${writerRole}`));
}

test('a payment whose quote authenticates itself starts unread; a repetition reaches the facilitator once for each gateway', async () => {
  const database = await createDatabase();
  const proxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const otherProxy = await startFacilitatorProxy(chain.facilitatorUrl);
  const gateway = await keyed(database, { facilitatorUrl: proxy.url });
  const other = await keyed(database, { facilitatorUrl: otherProxy.url });
  const before = await chain.balance(payTo);
  const offer = offerOf(await gateway.post(job, { body: 'x' }));
  const headers = header(await signOffer(offer));
  await eventually(async () => expect(await allEvents(database.db)).toHaveLength(1));
  // the gateway itself cannot read claims; its appends can
  await mayReadClaims(database, false);
  const paid = await gateway.post(job, { body: 'x', headers });
  const { digest: _, ...summarised } = await mint(database, { quote: { isSummarised: true } });
  const paidToo = await gateway.post(job, { body: 'x', headers: header(await signOffer(summarised)) });
  await mayReadClaims(database, true);
  expect([paid.status, paidToo.status]).toEqual([202, 202]);

  // the other gateway has not seen it: its start loses, and the winner's stream answers
  for (let i = 0; i < 5; i++)
    expect(await other.post(job, { body: 'x', headers })).toMatchObject({
      status: 202,
      json: { call_id: paid.json.call_id, receipt_token: paid.json.receipt_token },
    });
  expect(await other.post(job, { body: 'y', headers })).toMatchObject({ status: 409 });
  await gateway.post(job, { body: 'x', headers });
  const asked = (to: typeof proxy) => to.seen.filter((operation) => operation !== 'supported');
  expect(asked(proxy)).toEqual(['verify', 'settle', 'verify', 'settle']);
  expect(asked(otherProxy)).toEqual(['verify']);

  // a gateway that can ask no facilitator answers a known payment first as well
  const cutOff = await keyed(database, { facilitatorUrl: 'http://127.0.0.1:9' });
  expect((await cutOff.post(job, { body: 'x', headers })).status).toBe(202);
  const third = await keyed(database, { tables: '[limits]\nrequests_per_minute = 1' });
  await third.post(job, { body: 'x' });
  expect((await third.post(job, { body: 'x' })).status).toBe(429);
  expect((await third.post(job, { body: 'x', headers })).status).toBe(202);
  const fourth = await keyed(database);
  expect((await fourth.post(job, { body: 'y', headers })).json.code).toBe('payment_replay');

  expect((await chain.balance(payTo)) - before).toBe(2n * 3_264_000n);
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  expect(events.filter(({ type }) => type === 'payment_replay_denied')).toHaveLength(2);
  expect(events.filter(({ type }) => type === 'settlement_started')).toHaveLength(2);
});

test('an append on a revoked quote is stale, whichever way its batch is written', async () => {
  const { database, lane } = await databaseWithLane();
  onTestFinished(() => lane.close());
  const start = (stream: string, issuedAt: number, isDecided = false) =>
    lane.append({
      stream,
      issuedAt,
      events: [{ type: 'operator_runner_resumed', data: { runner: 'echo' } }],
      // a command that frees claims is always decided
      ...(isDecided ? { freed: [{ kind: 'transfer', owner: '', scope: '', key: stream, binding: '' }] } : {}),
    });
  const outcomes = async (at: number) =>
    [await start(`a${at}`, at), await start(`b${at}`, at, true)].map(({ outcome }) => outcome);
  const now = nowSecs() - 5;
  expect(await outcomes(now - 2)).toEqual(['ok', 'ok']);
  await revokeQuotes({ ...database, lane }, { beforeSecs: now, operator: 'ada' });
  expect(await outcomes(now - 1)).toEqual(['stale', 'stale']);
  expect(await outcomes(now)).toEqual(['ok', 'ok']);
});

import { createSecretKey } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import fc from 'fast-check';
import { keccak256, stringToBytes } from 'viem/utils';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { quoteDigest, recordedDigest, zeroAddress, zeroHash } from '../../../src/payments/rules/quote.ts';
import { readQuoteToken, writeQuoteToken } from '../../../src/payments/rules/quote-token.ts';
import type { IssuedQuote, QuoteRequest } from '../../../src/jobs/use-cases/issue-quote.ts';
import { recordQuote } from '../../../src/jobs/use-cases/quote-job.ts';
import { isQuoteTokenProof, quoteTokenProof } from '../../../src/payments/use-cases/receipt-keys.ts';
import { revokeQuotes } from '../../../src/jobs/use-cases/revoke-quotes.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import {
  absentRunner,
  configText,
  payTo,
  receiptKey,
  runnerSecret,
  startTestGateway,
  type TestGateway,
  startWithDatabase,
} from '../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { root } from '../../support/pages.ts';
import { header, offerOf, payer, signOffer, v1Header } from '../../support/payer.ts';
import { spawnProgram, temporaryFolder } from '../../support/program.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const open: QuoteRequest = { serviceId: 1, jobIndex: 0, requester: zeroAddress, inputsHash: zeroHash };

async function issue(gateway: TestGateway, request: Partial<QuoteRequest> = {}): Promise<IssuedQuote> {
  const issued = await gateway.quotes?.issue({ ...open, ...request });
  if (issued?.kind !== 'issued') throw new Error(`no quote was issued: ${JSON.stringify(issued)}`);
  return issued;
}

test('a quote that a program gets for its pricing service is recorded before it is returned', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const requester = '0xABCDEFabcdefABCDEFabcdefABCDEFabcdefABCD';
  const inputsHash = `0x${'1f'.repeat(32)}` as const;
  const { quote, digest, endpoint } = await issue(gateway, { requester, inputsHash });
  const recorded = (await allEvents(database.db)).filter(({ stream }) => stream === digest);
  expect(recorded).toMatchObject([{ type: 'quote_issued', data: { source: 'pricing' } }]);
  const [event] = recorded;
  if (event?.type !== 'quote_issued') throw new Error('no quote is recorded');
  expect(recordedDigest(event.data)).toBe(digest);
  expect(event.data).toMatchObject({ requester: requester.toLowerCase(), inputs_hash: inputsHash });
  expect(event.data).not.toHaveProperty('summarised');
  const url = new URL(endpoint);
  expect(`${url.origin}${url.pathname}`).toBe(`${gateway.url}/x402/jobs/1/0`);
  const { source, ...terms } = quote;
  expect(source).toBe('pricing');
  expect(readQuoteToken(url.searchParams.get('quote') ?? '')).toMatchObject({ digest, quote: terms });
  expect(quoteDigest(quote)).toBe(digest);
});

test('a quote that cannot be sold is refused with the reason, and nothing is recorded', async () => {
  const { database, gateway } = await startWithDatabase({
    chain,
    constants: { limits: { quoteEventsPerSec: 1 } },
  });
  expect(await gateway.quotes?.issue({ ...open, jobIndex: 9 })).toMatchObject({ code: 'job_not_found' });
  expect(await gateway.quotes?.issue({ ...open, jobIndex: 2 })).toMatchObject({ code: 'x402_disabled' });
  await expect(gateway.quotes?.issue({ ...open, requester: '0x12' })).rejects.toThrow('requester');
  await expect(gateway.quotes?.issue({ ...open, inputsHash: '0x12' })).rejects.toThrow('inputs hash');
  expect((await allEvents(database.db)).filter(({ type }) => type === 'quote_issued')).toEqual([]);
  // a flood: the ledger keeps each of these quotes for good
  const { quotes } = gateway;
  if (!quotes) throw new Error('the gateway issues no quotes');
  const flood = await Promise.all(Array.from({ length: 300 }, () => quotes.issue(open)));
  const refused = flood.filter((answer) => answer.kind === 'refused');
  expect(refused[0]).toEqual({ kind: 'refused', code: 'overloaded', reason: 'quote_allowance' });
  expect(flood.length - refused.length).toBeLessThanOrEqual(200);
  const recorded = (await allEvents(database.db)).filter(({ type }) => type === 'quote_issued');
  expect(recorded).toHaveLength(flood.length - refused.length);
  // the quotes of 402 answers have their own allowance
  expect((await gateway.post('/x402/jobs/1/0')).status).toBe(402);
});

test('a bound quote is paid only by its requester and for its body, and any other payment of it charges nothing', async () => {
  const { database, gateway } = await startWithDatabase({ chain });
  const asked = offerOf(await gateway.post(job, { body: 'x' }));
  const accepts = (digest: string) =>
    asked.accepts.map((one) => ({ ...one, extra: { ...one.extra, quoteDigest: digest } }));
  const before = await chain.balance(payTo);
  const inputsHash = keccak256(stringToBytes('x'));
  const another = await issue(gateway, { requester: payTo, inputsHash });
  const others = header(await signOffer({ ...asked, accepts: accepts(another.digest) }));
  const denied = await gateway.post(job, { body: 'x', headers: others });
  expect(denied).toMatchObject({ status: 402, json: { reason: 'requester_mismatch' } });
  const mine = await issue(gateway, { requester: payer.address, inputsHash });
  const paid = header(await signOffer({ ...asked, accepts: accepts(mine.digest) }));
  const changed = await gateway.post(job, { body: 'y', headers: paid });
  expect(changed).toMatchObject({ status: 402, json: { reason: 'inputs_hash_mismatch' } });
  expect(await chain.balance(payTo)).toBe(before);
  expect((await gateway.post(job, { body: 'x', headers: paid })).status).toBe(202);
  const started = (await allEvents(database.db)).filter(({ type }) => type === 'settlement_started');
  expect(started).toMatchObject([{ stream: mine.digest, data: { body_keccak256: inputsHash } }]);
});

const client = x402Client.fromConfig({
  schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
  spendControls: false,
});
const pathOf = ({ endpoint }: IssuedQuote): string => endpoint.slice(new URL(endpoint).origin.length);
const tokenOf = ({ endpoint }: IssuedQuote): string => new URL(endpoint).searchParams.get('quote') ?? '';

/** Texts that one edit makes of a token: a character replaced, put in or left out, a part cut off, two parts exchanged. */
function editOf(token: string): fc.Arbitrary<string> {
  const at = fc.nat(token.length - 1);
  const character = fc.oneof(
    fc.constantFrom('A', 'z', '0', '_', '-', '.', '=', '%'),
    fc.string({ size: 'xsmall' }),
  );
  return fc.oneof(
    fc.tuple(at, character).map(([i, text]) => token.slice(0, i) + text + token.slice(i + 1)),
    fc.tuple(at, character).map(([i, text]) => token.slice(0, i) + text + token.slice(i)),
    at.map((i) => token.slice(0, i) + token.slice(i + 1)),
    at.map((i) => token.slice(0, i)),
    at.map((i) => token.slice(i) + token.slice(0, i)),
  );
}

test('a client that is not ours pays exactly the issued quote at its address, at every gateway of the ledger, and no other address gets it', async () => {
  const database = await createDatabase();
  const quoteKey = {
    top: 'quote_key = "env:QUOTE_KEY"',
    env: { QUOTE_KEY: 'a-quote-key-of-a-test-of-32-bytes-or-more' },
  };
  const issuer = await startTestGateway({ database, chain, ...quoteKey });
  const other = await startTestGateway({ database, chain, ...quoteKey });
  const before = await chain.balance(payTo);
  const quotesOf = async () =>
    (await allEvents(database.db)).filter(
      ({ type, stream }) => type === 'quote_issued' && stream === bound.digest,
    );
  const inputsHash = keccak256(stringToBytes('x'));
  const bound = await issue(issuer, { requester: payer.address, inputsHash });

  // the offer is the issued quote at both gateways, and version 1 gets none
  for (const gateway of [issuer, other]) {
    const asked = await gateway.post(pathOf(bound), { body: 'x' });
    expect(asked.status).toBe(402);
    expect(asked.json).toMatchObject({
      code: 'payment_required',
      quote_digest: bound.digest,
      quote_expires_at: new Date(bound.quote.expiresAt * 1_000).toISOString(),
      accepts: [],
      error: expect.stringContaining('x402 version 1 cannot pay the quote'),
    });
    expect(asked.json).not.toHaveProperty('reason');
    const { accepts } = offerOf(asked);
    expect(accepts.map(({ asset, amount }) => ({ asset, amount }))).toEqual(
      bound.quote.options.map(({ asset, amount }) => ({ asset, amount: String(amount) })),
    );
    for (const { extra } of accepts) {
      expect(extra).toMatchObject({ quoteDigest: bound.digest, offerSecret: expect.any(String) });
      expect(extra).not.toHaveProperty('quote');
    }
  }
  expect(await quotesOf()).toHaveLength(1);

  // what cannot be offered gets a fresh quote with the reason
  const notRecorded = { ...bound.quote, salt: `0x${'5a'.repeat(32)}` } as const;
  const [, proof = ''] = tokenOf(bound).split('.');
  const revoked = await issue(issuer);
  const refusedAs = async (path: string, reason: string, body = 'x') => {
    const answer = await other.post(path, { body });
    const code = reason === 'quote_ended' ? reason : 'payment_required';
    expect(answer).toMatchObject({ status: 402, json: { code, reason } });
    expect(answer.json.quote_digest).not.toBe(bound.digest);
    expect(offerOf(answer).accepts[0]?.extra['quoteDigest']).toBe(answer.json.quote_digest);
  };
  await refusedAs(`${job}?quote=`, 'malformed_quote_token');
  await refusedAs(`${job}?quote=${'A'.repeat(7_500)}`, 'malformed_quote_token');
  await refusedAs(`${job}?quote=%00%ff.x`, 'malformed_quote_token');
  await refusedAs(`${pathOf(bound)}&quote=${tokenOf(bound)}`, 'repeated_quote_token');
  await refusedAs(`${job}?quote=${writeQuoteToken(notRecorded, proof)}`, 'unknown_quote');
  await refusedAs(pathOf(bound).replace('/1/0?', '/1/1?'), 'quote_of_another_job');
  await refusedAs(pathOf(bound), 'inputs_hash_mismatch', 'y');

  // any edit: never the recorded quote
  const token = tokenOf(bound);
  await fc.assert(
    fc.asyncProperty(editOf(token), async (changed) => {
      fc.pre(changed !== token);
      const { status, json } = await other.post(`${job}?quote=${encodeURIComponent(changed)}`, { body: 'x' });
      expect(status).toBe(402);
      expect(json.reason).toMatch(/^(malformed_quote_token|unknown_quote)$/);
      expect(json.quote_digest).not.toBe(bound.digest);
    }),
    propertyRuns(20),
  );
  const keys = [createSecretKey(receiptKey, 'utf8')] as const;
  const log = pino({ level: 'silent' });
  fc.assert(
    fc.property(editOf(token), (changed) => {
      fc.pre(changed !== token);
      const read = readQuoteToken(changed);
      expect(read && isQuoteTokenProof(keys, read.digest, read.proof, log)).not.toBe(true);
    }),
    propertyRuns(300),
  );
  expect(await chain.balance(payTo)).toBe(before);

  // the official client, at the gateway that did not issue it
  const response = await wrapFetchWithPayment(fetch, client)(`${other.url}${pathOf(bound)}`, {
    method: 'POST',
    body: 'x',
    headers: { 'content-type': 'text/plain' },
  });
  expect(response.status).toBe(202);
  expect(await response.json()).toMatchObject({ quote_digest: bound.digest, receipt: bound.digest });
  const amount = bound.quote.options[0]?.amount ?? 0n;
  expect((await chain.balance(payTo)) - before).toBe(amount);
  expect((await issuer.get(`/x402/receipts/${bound.digest}`)).status).toBe(200);
  expect(await quotesOf()).toHaveLength(1);
  await refusedAs(pathOf(bound), 'quote_ended');

  // a payment of version 1 to the address of a quote gets its own quote, and two payers of one quote: one pays
  const raced = await issue(issuer);
  const offer = offerOf(await other.post(pathOf(raced)));
  const [first, second] = await Promise.all([signOffer(offer), signOffer(offer)]);
  const both = await Promise.all([
    issuer.post(pathOf(raced), { headers: header(first) }),
    other.post(pathOf(raced), { headers: header(second) }),
  ]);
  expect(both.filter(({ status }) => status === 202)).toHaveLength(1);
  expect((await chain.balance(payTo)) - before).toBe(2n * amount);
  const own = await issuer.post(pathOf(raced), { headers: v1Header(await signOffer(offer)) });
  expect(own.status).toBe(202);
  expect(own.json.status).toBe('accepted');
  expect(own.json.quote_digest).not.toBe(raced.digest);
  expect((await chain.balance(payTo)) - before).toBe(3n * amount);

  const lane = laneOn(database);
  const old = { ...bound.quote, inputsHash: zeroHash, issuedAt: 1_700_000_000, expiresAt: 1_700_000_060 };
  await recordQuote({ lane }, old, quoteDigest(old));
  const oldProof = quoteTokenProof([createSecretKey(receiptKey, 'utf8')], quoteDigest(old));
  await refusedAs(`${job}?quote=${writeQuoteToken(old, oldProof)}`, 'quote_expired');
  const beforeSecs = revoked.quote.issuedAt + 1;
  // not in its own second: the next one is still to come
  await eventually(async () =>
    expect(await revokeQuotes({ ...database, lane }, { beforeSecs, operator: 'ada' })).toEqual({
      kind: 'revoked',
    }),
  );
  await refusedAs(pathOf(revoked), 'quote_revoked');
});

const tenPercentMore = (text: string): string => text.replace('"3200.00"', '"3520.00"');

test('an issued quote keeps its price where the rate has moved, and is not sold where its price was withdrawn', async () => {
  const database = await createDatabase();
  const issuer = await startTestGateway({ database, chain });
  const dearer = await startTestGateway({ database, chain, change: tenPercentMore });
  const withdrawn = await startTestGateway({
    database,
    chain,
    jobs: '[job_prices.1]\n1 = "1000000000000000"\n[[job_policies]]\nservice_id = 1\njob_index = 1\ninvocation_mode = "public_paid"\n',
  });
  const before = await chain.balance(payTo);
  const issued = await issue(issuer);
  const amount = issued.quote.options[0]?.amount ?? 0n;
  const now = BigInt(offerOf(await dearer.post(job)).accepts[0]?.amount ?? 0);
  expect(now * 10n).toBe(amount * 11n);

  // the job is not sold there: with the token, with the payment, and nothing is charged
  const asked = offerOf(await dearer.post(pathOf(issued)));
  expect(asked.accepts[0]).toMatchObject({ amount: String(amount), extra: { quoteDigest: issued.digest } });
  const payment = header(await signOffer(asked));
  const gone = { status: 404, json: { code: 'job_not_found' } };
  expect(await withdrawn.post(pathOf(issued))).toMatchObject(gone);
  expect(await withdrawn.post(pathOf(issued), { headers: payment })).toMatchObject(gone);
  expect(await withdrawn.post(pathOf(issued).replace('/1/0?', '/1/1?'))).toMatchObject({
    status: 402,
    json: { reason: 'quote_of_another_job' },
  });
  expect(await chain.balance(payTo)).toBe(before);

  // at another rate the payer pays what was quoted; it signs anew after a refusal
  const anew = header(await signOffer(asked));
  const paid = await dearer.post(pathOf(issued), { headers: anew });
  expect(paid).toMatchObject({ status: 202, json: { quote_digest: issued.digest } });
  expect((await chain.balance(payTo)) - before).toBe(amount);
});

test('a quote that was answered before its gateway was killed is on record, and another gateway takes its payment', async () => {
  const database = await createDatabase();
  const other = await startTestGateway({ database, chain });
  const file = join(temporaryFolder(), 'tollbook.toml');
  const text = configText({ database, chain });
  writeFileSync(file, text + absentRunner(text));
  const program = spawnProgram(
    [
      process.execPath,
      '--import',
      './scripts/check-node.mjs',
      'test/jobs/use-cases/fixtures/issue-until-killed.ts',
      file,
    ],
    root,
    { DATABASE_URL: database.url, RECEIPT_KEY: receiptKey, RUNNER_TOKEN: runnerSecret },
  );
  onTestFinished(() => program.kill('SIGKILL'));
  const recorded = async (): Promise<Set<string>> => {
    const events = await allEvents(database.db);
    return new Set(events.flatMap(({ type, stream }) => (type === 'quote_issued' ? stream : [])));
  };
  await eventually(async () => expect((await recorded()).size).toBeGreaterThan(12));
  program.kill('SIGKILL');
  const { stdout } = await program.ended;
  // the last line may be cut off
  const answered = stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line.split(' '));
  const kept = await recorded();
  expect(answered.filter(([digest = '']) => !kept.has(digest))).toEqual([]);
  // at most those under way: the program asks for four at once
  expect(kept.size - answered.length).toBeLessThanOrEqual(5);
  const [digest, address] = answered.at(-1) ?? [];
  const offer = offerOf(await other.post(address ?? ''));
  expect(offer.accepts[0]?.extra['quoteDigest']).toBe(digest);
  const paid = await other.post(address ?? '', { headers: header(await signOffer(offer)) });
  expect(paid).toMatchObject({ status: 202, json: { quote_digest: digest } });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

const terms = (json: string) => `${Buffer.from(json).toString('base64url')}.proof`;

test('reading a token is the exact inverse of writing it, and no other text is read', () => {
  const hex32 = fc.stringMatching(/^[0-9a-f]{64}$/);
  const hex20 = fc.stringMatching(/^[0-9a-f]{40}$/);
  const text = fc.stringMatching(/^[ -~]{1,20}$/);
  const option = fc.record({
    network: fc.constant('eip155:84532' as const),
    transferMethod: fc.constant('eip3009' as const),
    asset: hex20.map((hex) => `0x${hex}` as const),
    symbol: fc.stringMatching(/^[A-Za-z0-9._-]{1,16}$/),
    decimals: fc.nat(36),
    amount: fc.bigInt(1n, 2n ** 256n - 1n),
    payTo: hex20.map((hex) => `0x${hex}` as const),
    eip712Name: text,
    eip712Version: text,
  });
  const quote = fc.record({
    serviceId: fc.maxSafeNat(),
    jobIndex: fc.nat(2 ** 32 - 1),
    priceWei: fc.bigInt(1n, 2n ** 256n - 1n),
    options: fc.array(option, { minLength: 1, maxLength: 4 }),
    requester: hex20.map((hex) => `0x${hex}` as const),
    inputsHash: hex32.map((hex) => `0x${hex}` as const),
    issuedAt: fc.nat(),
    expiresAt: fc.nat(),
    salt: hex32.map((hex) => `0x${hex}` as const),
    isSummarised: fc.constant(false),
  });
  fc.assert(
    fc.property(quote, fc.stringMatching(/^[A-Za-z0-9_-]{43}$/), (written, proof) => {
      const read = readQuoteToken(writeQuoteToken(written, proof));
      expect(read).toEqual({ quote: written, digest: quoteDigest(written), proof });
    }),
    propertyRuns(),
  );
  for (const token of [
    '',
    '.',
    'a',
    '..',
    terms('{}'),
    terms('{"symbol":"\\ud800"}'),
    terms('['.repeat(4_000)),
  ])
    expect(readQuoteToken(token)).toBeUndefined();
  const isNone = fc.property(fc.string(), (any) => readQuoteToken(any) === undefined);
  fc.assert(isNone, propertyRuns());
  // a lone surrogate cannot be written, and must not end in a fault
  const [sample] = fc.sample(quote, propertyRuns(1));
  if (!sample) throw new Error('no sample');
  const [encoded = ''] = writeQuoteToken({ ...sample, salt: `0x${'0'.repeat(64)}` }, '').split('.');
  const json = Buffer.from(encoded, 'base64url').toString('utf8');
  expect(readQuoteToken(terms(json.replace(/"symbol":"/, '"symbol":"\\ud800')))).toBeUndefined();
});

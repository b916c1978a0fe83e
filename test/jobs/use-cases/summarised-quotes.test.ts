import { createHash } from 'node:crypto';
import path from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { pino } from 'pino';
import { authenticQuote, quoteKeysOf, type QuoteRealm } from '../../../src/payments/rules/quote-echo.ts';
import type { Hex } from '../../../src/base/values/primitives.ts';
import type { OfferedQuote } from '../../../src/jobs/use-cases/answer.ts';
import { createEventAllowance, type EventAllowance } from '../../../src/ledger/store/event-allowance.ts';
import { createOffers } from '../../../src/jobs/use-cases/offers.ts';
import { quoteJob } from '../../../src/jobs/use-cases/quote-job.ts';
import { receiptKeysOf } from '../../../src/payments/use-cases/receipt-keys.ts';
import { createRequestTally } from '../../../src/ledger/store/request-tally.ts';
import { createPromiseTracker } from '../../../src/base/runtime/promise-tracker.ts';
import { readCounters } from '../../../src/ledger/store/counters.ts';
import { type Lane, openLane } from '../../../src/ledger/store/lane.ts';
import { option } from '../../payments/rules/support.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { allEvents, expectSoundLedger } from '../../support/invariants.ts';
import { exportTo, testVerifier } from '../../support/log.ts';
import { temporaryFolder } from '../../support/program.ts';
import { propertyRuns } from '../../support/property-runs.ts';
import { verifyFile } from '../../../src/audit/use-cases/verify/verify-file.ts';
import { ExportVerifier } from '../../../src/audit/use-cases/verify/verify.ts';

const log = pino({ level: 'silent' });
const keys = quoteKeysOf(['a-key-of-quotes-of-thirty-two-characters']);
const quoteRealm: QuoteRealm = { ledgerId: 'ab', generation: 1, lane: 1, origin: 'https://jobs.example' };
const jobs = [0, 1].map((jobIndex) => ({
  serviceId: 1,
  jobIndex,
  mode: 'public_paid' as const,
  isSold: true,
  name: undefined,
  description: undefined,
  restriction: undefined,
  hasRunner: true,
  maxRunnerSilenceSecs: 0,
  isTopUp: false,
  discovery: undefined,
  inUsd: false,
  route: undefined,
  url: undefined,
  priced: undefined,
  priceWei: 10n ** 15n,
  options: [option],
  input: undefined,
  output: undefined,
}));

/** What issues quotes, as a gateway has it, and pays them. */
function issuerOn(
  database: TestDatabase,
  quoteEvents: EventAllowance,
  { hasKey = true, lane = laneOn(database) }: { hasKey?: boolean; lane?: Lane } = {},
) {
  const requestTally = createRequestTally();
  const unpaidQuotes = createPromiseTracker();
  const context = {
    lane,
    log,
    offers: createOffers(log),
    quoteEvents,
    quoteKeys: hasKey ? keys : undefined,
    quoteRealm,
    receiptKeys: receiptKeysOf(undefined, Buffer.alloc(32)),
    requestTally,
    unpaidQuotes,
    settings: { maxTimeoutSecs: 300, quoteTtlSecs: 300 },
  };
  return {
    async issue(job = jobs[0]!): Promise<OfferedQuote> {
      const answer = await quoteJob(context, { job, code: 'payment_required' });
      if (answer.kind !== 'payment_required') throw new Error('no quote was issued');
      return answer.quote;
    },
    /** Records the quote that a payment echoes, as the start of the payment does. */
    async pay({ digest: quoteDigest, serviceId, jobIndex, echoes }: OfferedQuote) {
      const terms = { ...option, amount: String(option.amount), quoteDigest, echo: echoes![0]! };
      const { data } = authenticQuote(keys, quoteRealm, { serviceId, jobIndex }, terms)!;
      return lane.append({ stream: quoteDigest, expect: 0, events: [{ type: 'quote_issued', data }] });
    },
    record: () => requestTally.record(lane),
    recorded: () => unpaidQuotes.drained(),
  };
}

const quoted = async ({ db }: TestDatabase): Promise<number> => (await readCounters(db)).counters.quoted;

const sha256 = (...parts: Buffer[]): Buffer => createHash('sha256').update(Buffer.concat(parts)).digest();

/** The RFC 6962 root of a list of leaves, by its definition. */
function rootOf(leaves: readonly Buffer[]): Buffer {
  const [only] = leaves;
  if (leaves.length === 1 && only) return sha256(Buffer.of(0), only);
  let split = 1;
  while (2 * split < leaves.length) split *= 2;
  return sha256(Buffer.of(1), rootOf(leaves.slice(0, split)), rootOf(leaves.slice(split)));
}

test('a flood of thousands of unpaid quotes leaves a burst of events, five a second and one sum a second', async () => {
  const database = await createDatabase();
  const startedAt = performance.now();
  const allowance = await createEventAllowance({ ...database, log }, 'quote', 5);
  const issuer = issuerOn(database, allowance);
  const digests: Hex[] = [];
  const sums = 4;
  for (let second = 0; second < sums; second++) {
    for (let chunk = 0; chunk < 5; chunk++) {
      const quotes = await Promise.all(Array.from({ length: 100 }, (_, i) => issuer.issue(jobs[i % 2])));
      for (const { digest, echoes } of quotes) if (echoes![0]!.summarised) digests.push(digest);
    }
    await issuer.recorded();
    await issuer.record();
  }
  const secs = (performance.now() - startedAt) / 1_000;
  const events = await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const recorded = events.filter(({ type }) => type === 'quote_issued').length;
  expect(recorded).toBeLessThanOrEqual(200 + 5 * secs);
  expect(recorded).toBeGreaterThanOrEqual(50);
  expect(recorded + digests.length).toBe(2_000);
  expect(events).toHaveLength(recorded + sums);
  expect(await quoted(database)).toBe(2_000);
  let from = 0;
  for (const event of events) {
    if (event.type !== 'quotes_issued') continue;
    const { quotes, root } = event.data;
    const size = quotes.reduce((sum, { count }) => sum + count, 0);
    const leaves = digests.slice(from, from + size).map((digest) => Buffer.from(digest.slice(2), 'hex'));
    expect(root).toBe(`0x${rootOf(leaves).toString('hex')}`);
    expect(quotes).toMatchObject([
      { service_id: 1, job_index: 0 },
      { service_id: 1, job_index: 1 },
    ]);
    from += size;
  }
  expect(from).toBe(digests.length);
});

test('each quote is counted once, in whatever order quotes are issued, paid and summed up', async () => {
  const database = await createDatabase();
  const decided: boolean[] = [];
  const issuers = [0, 1].map(() => issuerOn(database, { take: () => decided.pop() ?? false }));
  const step = fc.record({
    gateway: fc.nat(1),
    op: fc.constantFrom('issue', 'issue', 'pay', 'pay', 'sum', 'record'),
    isRecorded: fc.boolean(),
    quote: fc.nat(9),
  });
  let issued = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const quotes: OfferedQuote[] = [];
      const running: Promise<unknown>[] = [];
      for (const { gateway, op, isRecorded, quote } of steps) {
        const issuer = issuers[gateway]!;
        const chosen = quotes[quote % Math.max(1, quotes.length)];
        if (op === 'issue') {
          decided.push(isRecorded);
          quotes.push(await issuer.issue(jobs[quote % 2]));
        } else if (op === 'pay' && chosen) running.push(issuer.pay(chosen));
        else if (op === 'sum') await issuer.record();
        else await issuer.recorded();
      }
      issued += quotes.length;
      await Promise.all(running);
      for (const issuer of issuers) {
        await issuer.recorded();
        await issuer.record();
      }
      expect(await quoted(database)).toBe(issued);
    }),
    propertyRuns(10),
  );
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
  const file = path.join(temporaryFolder(), 'export.jsonl');
  await exportTo(file, database);
  const verdict = await verifyFile(file, new ExportVerifier([], testVerifier));
  expect(verdict).toMatchObject({ isSound: true, hasCounters: true });
  expectIndependent(await verifyIndependently(file, []), true);
});

test('gateways share what they may record: together not more than their bursts, and nothing is waited for', async () => {
  const database = await createDatabase();
  const startedAt = performance.now();
  const gateways = await Promise.all(
    [1, 2, 3].map(() => createEventAllowance({ ...database, log }, 'quote', 5)),
  );
  let taken = 0;
  for (let round = 0; round < 20; round++) {
    for (const gateway of gateways) for (let i = 0; i < 100; i++) taken += gateway.take() ? 1 : 0;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(taken).toBeLessThanOrEqual(300 + (5 * (performance.now() - startedAt)) / 1_000);
  expect(taken).toBeGreaterThanOrEqual(150);
});

test('a quote that was to be recorded is recorded although the lane is full', async () => {
  const database = await createDatabase();
  const lane = openLane({ url: database.url, maxQueued: 0 });
  onTestFinished(() => lane.close());
  const issuer = issuerOn(database, { take: () => true }, { lane });
  const quotes = await Promise.all(Array.from({ length: 10 }, () => issuer.issue()));
  await issuer.recorded();
  expect((await allEvents(database.db)).map(({ stream }) => stream).toSorted()).toEqual(
    quotes.map(({ digest }) => digest).toSorted(),
  );
});

test('without a key no quote is summarised: each is in the ledger before its answer', async () => {
  const database = await createDatabase();
  const issuer = issuerOn(database, { take: () => false }, { hasKey: false });
  const { digest } = await issuer.issue();
  expect((await allEvents(database.db)).map(({ stream }) => stream)).toEqual([digest]);
  await issuer.record();
  expect(await quoted(database)).toBe(1);
});

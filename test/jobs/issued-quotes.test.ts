import { keccak256, stringToBytes } from 'viem/utils';
import { expect, test } from 'vitest';
import { quoteDigest, recordedDigest, zeroAddress, zeroHash } from '../../src/domain/payments/quote.ts';
import { readQuoteToken } from '../../src/domain/payments/quote-token.ts';
import type { IssuedQuote, QuoteRequest } from '../../src/jobs/issue-quote.ts';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { payTo, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { allEvents } from '../support/invariants.ts';
import { header, offerOf, payer, signOffer } from '../support/payer.ts';

const chain = useChain();
const job = '/x402/jobs/1/0';
const open: QuoteRequest = { serviceId: 1, jobIndex: 0, requester: zeroAddress, inputsHash: zeroHash };

async function issue(gateway: TestGateway, request: Partial<QuoteRequest> = {}): Promise<IssuedQuote> {
  const issued = await gateway.quotes?.issue({ ...open, ...request });
  if (issued?.kind !== 'issued') throw new Error(`no quote was issued: ${JSON.stringify(issued)}`);
  return issued;
}

test('a quote that a program gets for its pricing service is recorded before it is returned', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
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
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain, tables: '[limits]\nquote_events_per_sec = 1' });
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
  expect(refused[0]).toEqual({ kind: 'refused', code: 'overloaded', reason: 'quote_events_per_sec' });
  expect(flood.length - refused.length).toBeLessThanOrEqual(200);
  const recorded = (await allEvents(database.db)).filter(({ type }) => type === 'quote_issued');
  expect(recorded).toHaveLength(flood.length - refused.length);
  // the quotes of 402 answers have an allowance of their own
  expect((await gateway.post('/x402/jobs/1/0')).status).toBe(402);
});

test('a bound quote is paid only by its requester and for its body, and any other payment of it charges nothing', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
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
});

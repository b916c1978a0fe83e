import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ExactEvmScheme } from '@x402/evm/exact/client';
import { wrapFetchWithPayment, x402Client } from '@x402/fetch';
import { parquetReadObjects } from 'hyparquet';
import { recoverAddress } from 'viem';
import { bytesToHex, hexToBytes, keccak256, stringToBytes } from 'viem/utils';
import { expect, test } from 'vitest';
import type { BookFormat } from '../../../src/base/values/format.ts';
import { recordedDigest } from '../../../src/payments/rules/quote.ts';
import { issueOperatorToken } from '../../../src/accounts/use-cases/operator-tokens.ts';
import { booksFrom, readCsv } from '../../finance/use-cases/books/support.ts';
import { laneOn } from '../../support/credit.ts';
import { createDatabase } from '../../support/database.ts';
import { useChain } from '../../support/devnet.ts';
import { payTo, startTestGateway, startWithDatabase } from '../../support/gateway.ts';
import { expectIndependent, verifyIndependently } from '../../support/independent.ts';
import { allEvents } from '../../support/invariants.ts';
import { complaintsOf, isAbsent } from '../../support/journal-tools.ts';
import { exportTo } from '../../support/log.ts';
import { payer } from '../../support/payer.ts';
import { grpcClient, operator, startPricing } from '../../support/pricing.ts';
import { temporaryFolder } from '../../support/program.ts';
import { startTestRunner } from '../../support/runner.ts';
import { eventually } from '../../support/wait.ts';

const chain = useChain();

test('a quote that a gRPC client of another implementation gets is paid by an official client, and ledger, receipt and every export carry its one digest', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const gateway = await startTestGateway({ database, chain, runnerUrl: runner.url });
  const [body, requester] = ['x', payer.address.toLowerCase()];
  const inputsHash = keccak256(stringToBytes(body));
  const request = { requester: hexToBytes(payer.address), inputs_hash: hexToBytes(inputsHash) };

  // without x402 there is nothing to pay; with it, exactly one quote, which the operator has signed
  const bare = await grpcClient((await startPricing()).url)(request);
  for (const field of ['settlement_options', 'x402_endpoint']) expect(bare).not.toHaveProperty(field);
  const answer = await grpcClient((await startPricing({ x402: gateway.quotes })).url)(request);
  const digest = bytesToHex(answer.quote_details.digest);
  for (const { quote_details: details, signature } of [bare, answer]) {
    const hash = bytesToHex(details.digest);
    expect((await recoverAddress({ hash, signature: bytesToHex(signature) })).toLowerCase()).toBe(
      operator.address,
    );
  }
  const options = answer.settlement_options ?? [];
  expect(options.map(({ symbol }) => symbol)).toEqual(['USDC', 'EURC']);
  const endpoint = answer.x402_endpoint ?? '';
  expect(endpoint.startsWith(`${gateway.url}/x402/jobs/1/0?quote=`)).toBe(true);

  // an unmodified client, which knows nothing but the address
  const client = x402Client.fromConfig({
    schemes: [{ network: 'eip155:*', client: new ExactEvmScheme(payer) }],
    spendControls: false,
  });
  const before = await chain.balance(payTo);
  const headers = { 'content-type': 'text/plain' };
  const paid = await wrapFetchWithPayment(fetch, client)(endpoint, { method: 'POST', body, headers });
  expect(paid.status).toBe(202);
  expect(await paid.json()).toMatchObject({ quote_digest: digest, receipt: digest });
  expect((await chain.balance(payTo)) - before).toBe(BigInt(String(options[0]?.['amount'])));

  // the receipt and the ledger, in which there is no other quote
  await eventually(async () => {
    const { json } = await gateway.get(`/x402/receipts/${digest}`);
    expect(json).toMatchObject({ quote_digest: digest, state: 'completed', paid: true });
  });
  const events = await allEvents(database.db);
  expect(events.filter(({ type }) => type === 'quote_issued')).toMatchObject([{ stream: digest }]);
  const own = events.filter(({ stream }) => stream === digest);
  expect(own).toMatchObject([
    { type: 'quote_issued', data: { source: 'pricing', requester, inputs_hash: inputsHash } },
    { type: 'payment_verified', data: { payer: requester } },
    { type: 'settlement_started', data: { body_keccak256: inputsHash } },
    { type: 'payment_settled' },
    { type: 'enqueued' },
    { type: 'delivered' },
    { type: 'completed' },
  ]);
  expect(own[0]?.type === 'quote_issued' && recordedDigest(own[0].data)).toBe(digest);

  // the audit API says where the quote came from
  const lane = laneOn(database);
  const { token } = await issueOperatorToken(
    { ...database, lane },
    { name: 'auditor', scopes: ['audit:read'] },
  );
  const asAuditor = { authorization: `Bearer ${token}` };
  const listed = { quote_digest: digest, quote_source: 'pricing', state: 'completed' };
  await eventually(async () => {
    const { json } = await gateway.get('/audit/payments', asAuditor);
    expect(json.payments).toMatchObject([listed]);
  });
  expect((await gateway.get(`/audit/payments/${digest}`, asAuditor)).json).toMatchObject(listed);

  // every format of the export
  const file = path.join(temporaryFolder(), 'ledger.jsonl');
  await exportTo(file, database);
  expect(new Set(readFileSync(file, 'utf8').match(/"stream":"0x[0-9a-f]{64}"/g))).toEqual(
    new Set([`"stream":"${digest}"`]),
  );
  expectIndependent(await verifyIndependently(file, []), true);
  const ends = [own[0], events.at(-1)].map((event) => Date.parse(event?.at ?? ''));
  const period = { fromMs: Math.min(...ends), toMs: Math.max(...ends) + 1 };
  const bookIn = (format: BookFormat): Promise<Buffer> => booksFrom(file, period, format);
  const row = { quote_digest: digest, quote_source: 'pricing' };
  const payments = [
    { category: 'payment', ...row },
    { category: 'delivery', ...row },
  ];
  expect(readCsv((await bookIn('csv')).toString())).toMatchObject(payments);
  const parquet = Uint8Array.from(await bookIn('parquet')).buffer;
  expect(await parquetReadObjects({ file: parquet })).toMatchObject(payments);
  for (const tool of ['hledger', 'beancount'] as const) {
    const journal = (await bookIn(tool)).toString();
    const [quote, source] = tool === 'hledger' ? [digest, 'pricing'] : [`"${digest}"`, '"pricing"'];
    expect(journal.match(/quote: ?\S+/g)?.map((text) => text.replace(/^quote: ?/, ''))).toEqual([
      quote,
      quote,
    ]);
    expect(journal.match(/quote_source: ?\S+/g)?.map((text) => text.replace(/^quote_source: ?/, ''))).toEqual(
      [source, source],
    );
    const written = path.join(temporaryFolder(), tool);
    writeFileSync(written, journal);
    expect(isAbsent(tool) ? '' : await complaintsOf(tool, written)).toBe('');
  }
});

test('a job that x402 does not sell still has a price, and the answer says why it has no options', async () => {
  const gateway = await startTestGateway({ database: await createDatabase(), chain });
  const prices = new Map([['1/2', 10n ** 15n]]);
  const { url } = await startPricing({ prices, x402: gateway.quotes });
  const unsold = await grpcClient(url)({ job_index: 2 });
  expect(unsold).toMatchObject({ x402_refusal: 'x402_disabled' });
  expect(unsold).not.toHaveProperty('x402_endpoint');
});

test('where the ledger takes no quote the engine answers none', async () => {
  const { gateway } = await startWithDatabase({ chain });
  const ask = grpcClient((await startPricing({ x402: gateway.quotes })).url);
  await gateway.stop();
  await expect(ask()).rejects.toThrow('UNAVAILABLE');
});

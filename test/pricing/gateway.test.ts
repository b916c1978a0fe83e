import { bytesToHex, hexToBytes } from 'viem/utils';
import { keccak256, stringToBytes } from 'viem/utils';
import { expect, test } from 'vitest';
import { recordedDigest } from '../../src/domain/payments/quote.ts';
import { createDatabase } from '../support/database.ts';
import { useChain } from '../support/devnet.ts';
import { startTestGateway } from '../support/gateway.ts';
import { allEvents } from '../support/invariants.ts';
import { header, offerOf, payer, signOffer } from '../support/payer.ts';
import { grpcClient, startPricing } from '../support/pricing.ts';

const chain = useChain();

test('the signed answer of a program with a gateway has the digest of the recorded quote, and that quote is paid', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
  const ask = grpcClient((await startPricing({ x402: gateway.quotes })).url);
  const inputsHash = keccak256(stringToBytes('x'));
  const answer = await ask({
    requester: hexToBytes(payer.address),
    inputs_hash: hexToBytes(inputsHash),
  });
  const digest = bytesToHex(answer.quote_details.digest);
  const recorded = (await allEvents(database.db)).filter(({ type }) => type === 'quote_issued');
  expect(recorded).toMatchObject([{ stream: digest, data: { source: 'pricing', inputs_hash: inputsHash } }]);
  const [event] = recorded;
  expect(event?.type === 'quote_issued' && recordedDigest(event.data)).toBe(digest);
  expect(answer.settlement_options?.map((one) => one['symbol'])).toEqual(['USDC', 'EURC']);

  const endpoint = new URL(answer.x402_endpoint ?? '');
  expect(endpoint.origin + endpoint.pathname).toBe(`${gateway.url}/x402/jobs/1/0`);
  const fresh = offerOf(await gateway.post(endpoint.pathname, { body: 'x' }));
  const accepts = fresh.accepts.map((one) => ({ ...one, extra: { ...one.extra, quoteDigest: digest } }));
  const amounts = answer.settlement_options?.map((one) => one['amount']);
  expect(accepts.map(({ amount }) => amount)).toEqual(amounts);
  const headers = header(await signOffer({ ...fresh, accepts }));
  const paid = await gateway.post(endpoint.pathname, { body: 'x', headers });
  expect(paid).toMatchObject({ status: 202, json: { quote_digest: digest } });

  // a job that x402 does not sell has a price all the same, and the answer says why it has no options
  const prices = new Map([['1/2', 10n ** 15n]]);
  const unsold = await grpcClient((await startPricing({ prices, x402: gateway.quotes })).url)({
    job_index: 2,
  });
  expect(unsold).toMatchObject({ x402_refusal: 'x402_disabled' });
  expect(unsold).not.toHaveProperty('x402_endpoint');
});

test('where the ledger takes no quote the engine answers none', async () => {
  const database = await createDatabase();
  const gateway = await startTestGateway({ database, chain });
  const ask = grpcClient((await startPricing({ x402: gateway.quotes })).url);
  await gateway.stop();
  await expect(ask()).rejects.toThrow('UNAVAILABLE');
});

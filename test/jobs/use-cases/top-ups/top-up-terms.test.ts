import { describe, expect, test } from 'vitest';
import { smartWallet } from '../../../../src/devnet/contracts.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { openWalletUser } from '../../../../src/accounts/use-cases/wallet-user.ts';
import { deployContract } from '../../../support/contracts.ts';
import { expectBooks, laneOn } from '../../../support/credit.ts';
import { createDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { networkOf } from '../../../support/gateway.ts';
import { newWallet, siweFor } from '../../../support/identity.ts';
import { header, offerOf, payer, payFor, quoteAndSign } from '../../../support/payer.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { eventsOf, fundedWallet, rates, startTopUpGateway, topUpJob } from '../../../support/top-up.ts';
import { eventually } from '../../../support/wait.ts';

const chain = useChain();

test('a quote keeps its credit when the rate of its token changes or is removed', async () => {
  const database = await createDatabase();
  const seller = await startTopUpGateway(chain, { database, isServed: false });
  const paid = await quoteAndSign(seller, topUpJob, 'x', { option: 1 });
  const unpaid = await quoteAndSign(seller, topUpJob, 'x', { option: 1 });
  expect((await seller.post(topUpJob, { body: 'x', headers: header(paid) })).status).toBe(202);
  const gateway = await startTopUpGateway(chain, { database, atRates: '{ USDC = "2" }' });
  expect((await gateway.post(topUpJob, { body: 'x', headers: header(unpaid) })).status).toBe(202);
  await eventually(async () => {
    const credited = await eventsOf(database, 'credit_topped_up');
    expect(credited.map(({ data }) => [data.symbol, data.amount_micros])).toEqual([
      ['EURC', '10812345'],
      ['EURC', '10812345'],
    ]);
    expect(await eventsOf(database, 'completed')).toHaveLength(2);
  });
  await expectBooks(database);
});

test('a token without a rate buys no credit, whatever its price: no payment with it is taken', async () => {
  const gateway = await startTopUpGateway(chain, { atRates: '{ USDC = "1" }' });
  const { accepts } = offerOf(await gateway.post(topUpJob, { body: 'x' }));
  expect(accepts.map(({ asset }) => asset.toLowerCase())).toEqual([chain.token]);
  const other = await startTopUpGateway(chain, { atRates: rates });
  const payment = await quoteAndSign(other, topUpJob, 'x', { option: 1 });
  expect((await gateway.post(topUpJob, { body: 'x', headers: header(payment) })).status).toBe(402);
});

test('a quote without credit buys none: a gateway that sells credit refuses its payment before money moves', async () => {
  const database = await createDatabase();
  const other = await startTopUpGateway(chain, { database, isServed: false, atRates: '' });
  const wallet = await fundedWallet(chain);
  const payment = await quoteAndSign(other, topUpJob, 'x', { account: wallet.account });
  const gateway = await startTopUpGateway(chain, { database });
  const refused = await gateway.post(topUpJob, { body: 'x', headers: header(payment) });
  expect([refused.status, await chain.balance(wallet.payer)]).toEqual([402, 100_000_000n]);
  // the other gateway takes another payment of such a quote: what nothing can credit is due as a refund
  expect((await payFor(other, topUpJob, 'x', { account: wallet.account })).status).toBe(202);
  await eventually(async () => {
    const [dead] = await eventsOf(database, 'dead_lettered');
    expect(dead?.data.reason).toBe('quote_without_credit');
  });
  expect(await eventsOf(database, 'credit_topped_up')).toEqual([]);
  await expectBooks(database);
});

/** A contract wallet with 100 USDC; `payer` owns it. */
async function contractWallet(): Promise<Address> {
  const wallet = await deployContract(chain.rpcUrl, smartWallet, [payer.address]);
  await chain.mint(wallet, 100_000_000n);
  return wallet;
}

describe('a contract wallet', () => {
  test('buys credit for the account to which it signs in on the chain of its payment', async () => {
    const gateway = await startTopUpGateway(chain, { identity: 'siwe_chain_id = 84532' });
    const wallet = await contractWallet();
    const paid = await payFor(gateway, topUpJob, 'x', { signed: { from: wallet } });
    expect(paid.status).toBe(202);
    await eventually(async () => expect(await eventsOf(gateway.database, 'completed')).toHaveLength(1));
    const browser = gateway.browser();
    const { message, signature } = await siweFor(browser, payer, { address: wallet });
    const answer = await browser.post('/api/siwe/verify', { address: wallet, message, signature });
    expect(answer.status).toBe(200);
    expect((await browser.get('/v1/credits')).json.balance).toBe('10');
  });

  test('of another chain buys none, since its address may be of another owner here: no money moves', async () => {
    // it serves chain 1, for all that the start can see
    const rpc = await startRpcProxy(chain.rpcUrl);
    rpc.lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : undefined);
    const gateway = await startTopUpGateway(chain, { identity: networkOf('eip155:1', rpc.url) });
    const wallet = await contractWallet();
    const paid = await payFor(gateway, topUpJob, 'x', { signed: { from: wallet } });
    expect(paid).toMatchObject({ status: 402, json: { reason: 'contract_wallet_of_another_chain' } });
    expect(await chain.balance(wallet)).toBe(100_000_000n);
  });

  test('has an account on each chain, and none of them is that of its address as a key', async () => {
    const database = await createDatabase();
    const ledger = { ...database, lane: laneOn(database) };
    const address = newWallet().address.toLowerCase() as Address;
    const users = await Promise.all(
      [undefined, 1, 84_532, undefined, 84_532].map((contractOn) =>
        openWalletUser(ledger.pool, { address, contractOn }),
      ),
    );
    expect(new Set(users).size).toBe(3);
    expect([users[3], users[4]]).toEqual([users[0], users[2]]);
  });
});

import { generatePrivateKey } from 'viem/accounts';
import { describe, expect, it, test } from 'vitest';
import {
  commitmentOf,
  prepaidContractAddress,
  fundPrepaidAccount,
} from '../../../../src/devnet/prepaid-contract.ts';
import type { SpendAuth } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { paidModel, startChatGateway } from '../../../support/chat-gateway.ts';
import { logLines } from '../../../support/log-lines.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { operator, signSpend } from '../../../support/spend.ts';
import {
  ask,
  chat,
  codeOf,
  expectSpendEvents,
  type SpendAccount,
  useSpendChain,
  says,
  secret,
} from '../../../support/spend-gateway.ts';

const spends = useSpendChain();
const domain = () => ({ chainId: spends.chain.chain.chainId, contract: prepaidContractAddress });
const nowSecs = () => BigInt(Math.floor(Date.now() / 1_000));

describe('a refused spend keeps its nonce and calls no upstream', () => {
  type Make = (account: SpendAccount) => Promise<SpendAuth>;
  /** One for each check; the others of each are in test/accounts/rules/spend/spend-auth.test.ts. */
  const faults: [string, string, Make][] = [
    ['below the maximum cost of the request', '400 below_min_charge', (a) => a.sign({ amount: 3_000n })],
    ['above the balance', '402 insufficient_balance', (a) => a.sign({ amount: 5_000_001n })],
    // 10 + 5 seconds for landing, 125 for the upstream, 300 for claiming
    [
      'with too little time for the request and the payout',
      '402 invalid_spend_auth',
      (a) => a.sign({ expiry: nowSecs() + 435n }),
    ],
    [
      'for another chain',
      '402 signer_mismatch',
      (a) => signSpend({ ...domain(), chainId: 1 }, a.key, { commitment: a.commitment }),
    ],
  ];
  it.each(faults)('%s', async (_, code, make) => {
    const gateway = await spends.gateway();
    const account = await spends.account(5_000_000n);
    expect(await codeOf(await ask(gateway, await make(account)))).toBe(code);
    expect(gateway.model.calls).toHaveLength(0);
    await expectSpendEvents(gateway, account, []);
    expect((await ask(gateway, await account.sign())).status).toBe(200);
  });
});

test('a spend with the earliest allowed expiry is accepted', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account();
  expect((await ask(gateway, await account.sign({ expiry: nowSecs() + 445n }))).status).toBe(200);
});

test('a spend from an account of another token is refused', async () => {
  const gateway = await spends.gateway();
  const spendingPrivateKey = generatePrivateKey();
  const { chain, secondToken: token } = spends.chain;
  await fundPrepaidAccount(chain, {
    prepaidContract: prepaidContractAddress,
    token,
    spendingPrivateKey,
    amountAtoms: 10_000_000n,
  });
  const auth = await signSpend(domain(), spendingPrivateKey);
  expect(auth.commitment).toBe(commitmentOf(spendingPrivateKey));
  expect(await codeOf(await ask(gateway, auth))).toBe('402 invalid_spend_auth');
});

test('wrong signatures count against the client, whose further ones do not call the chain', async () => {
  const gateway = await spends.gateway({ constants: { chat: { failedAuthPerMinute: 3 } } });
  const forge = async () => codeOf(await ask(gateway, await signSpend(domain(), generatePrivateKey())));
  for (let tries = 0; tries < 3; tries++) expect(await forge()).toBe('402 signer_mismatch');
  expect(await forge()).toBe('429 rate_limit_exceeded');
});

test('a spend whose landing costs too much gas for its amount is refused without a charge', async () => {
  const costly = await spends.gateway({ spend: { atoms_per_native_unit: `"${10n ** 18n}"` } });
  const auth = await (await spends.account()).sign();
  const refused = await ask(costly, auth, chat(), secret);
  expect(await codeOf(refused)).toBe('503 chain_unavailable');
  expect(costly.model.calls).toHaveLength(0);
  const gateway = await spends.gateway({ database: costly.database });
  expect((await ask(gateway, auth, chat(), secret)).status).toBe(200);
});

test('a spend is refused without a charge while the chain cannot be reached', async () => {
  const gateway = await spends.gateway({ rpcUrl: 'http://127.0.0.1:1' });
  const auth = await (await spends.account()).sign();
  const answer = await ask(gateway, auth);
  expect(answer.headers.get('retry-after')).toBe('2');
  expect(await codeOf(answer)).toBe('503 chain_unavailable');
  await expectSpendEvents(gateway, auth, []);
});

test('the log names the request whose spend did not land, with the words of the node', async () => {
  const proxy = await startRpcProxy(spends.chain.rpcUrl);
  const { lines, logger } = logLines();
  const gateway = await spends.gateway({ logger, rpcUrl: proxy.url });
  const auth = await (await spends.account()).sign();
  proxy.lie = ({ method }) =>
    method === 'eth_sendRawTransaction'
      ? { error: { code: -32_000, message: 'the pool is full' } }
      : undefined;
  expect(await codeOf(await ask(gateway, auth))).toBe('503 chain_unavailable');
  const line = lines.find(({ msg }) => msg === 'a spend authorization did not land');
  expect(line).toMatchObject({ level: 40, chat_id: expect.any(String) as string });
  expect(JSON.stringify(line?.['err'])).toContain('the pool is full');
});

test('a gateway without spends refuses a spend header as a credential', async () => {
  const gateway = await startChatGateway();
  const auth = await (await spends.account()).sign();
  expect(await codeOf(await ask(gateway, auth))).toBe('401 invalid_api_key');
});

describe('a request without credentials for a model that costs credit', () => {
  const ofOffer = ['required', 'token', 'recipient', 'network'].map((name) => `x-payment-${name}`);
  const offerOf = ({ headers }: Response) => ofOffer.map((name) => headers.get(name));

  it('receives an offer whose amount pays for it', async () => {
    const gateway = await spends.gateway();
    const response = await gateway.post(chat());
    const [amount, ...rest] = offerOf(response);
    expect(rest).toEqual([spends.chain.token, operator, 'eip155:84532']);
    expect(await codeOf(response)).toBe('402 insufficient_funds');
    const account = await spends.account();
    const short = await account.sign({ amount: BigInt(amount ?? 0) - 1n });
    expect(await codeOf(await ask(gateway, short))).toBe('400 below_min_charge');
    expect((await ask(gateway, await account.sign({ amount: BigInt(amount ?? 0) }))).status).toBe(200);
  });

  it('receives no offer from a gateway without spends', async () => {
    const gateway = await startChatGateway();
    const response = await gateway.post({ model: paidModel, messages: says('hello') });
    expect(response.status).toBe(402);
    expect(offerOf(response)).toEqual([null, null, null, null]);
  });
});

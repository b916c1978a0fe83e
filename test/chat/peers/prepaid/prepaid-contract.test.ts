import { createTestClient, type Hex, http, publicActions, walletActions } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import {
  commitmentOf,
  prepaidContractAddress,
  deployPrepaidContract,
  fundPrepaidAccount,
} from '../../../../src/devnet/prepaid-contract.ts';
import type { SpendAuth } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import { spendAuthHash } from '../../../../src/accounts/rules/spend/spend-auth.ts';
import {
  createPrepaidContract,
  type CreditsOptions,
} from '../../../../src/chat/peers/prepaid/prepaid-contract.ts';
import { passTime } from '../../../support/deadlines.ts';
import { useChain } from '../../../support/devnet.ts';
import { operator, signSpend } from '../../../support/spend.ts';
import { startRpcProxy } from '../../../support/rpc-proxy.ts';
import { eventually } from '../../../support/wait.ts';
import { startRpcStub, succeed } from '../../../base/peers/rpc/rpc-stub.ts';

const chain = useChain();
beforeAll(async () => void (await deployPrepaidContract(chain.chain, chain.token)));

const waitMs = 20_000;
const node = () =>
  createTestClient({ mode: 'anvil', transport: http(chain.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions);

function creditsOn(change: Partial<CreditsOptions> = {}) {
  const credits = createPrepaidContract({
    chainId: chain.chain.chainId,
    rpcUrl: chain.rpcUrl,
    contract: prepaidContractAddress,
    privateKey: devnetKeys.operator,
    timeoutMs: 20_000,
    ...change,
  });
  onTestFinished(() => credits.close());
  return credits;
}

async function account(amountAtoms = 1_000n): Promise<Hex> {
  const spendingPrivateKey = generatePrivateKey();
  await fundPrepaidAccount(chain.chain, {
    prepaidContract: prepaidContractAddress,
    token: chain.token,
    spendingPrivateKey,
    amountAtoms,
  });
  return spendingPrivateKey;
}
const signed = (key: Hex, change: Partial<SpendAuth> = {}): Promise<SpendAuth> =>
  signSpend({ chainId: chain.chain.chainId, contract: prepaidContractAddress }, key, {
    amount: 100n,
    ...change,
  });

async function stalled<T>(work: () => Promise<T>): Promise<T> {
  await node().setAutomine(false);
  await node().setIntervalMining({ interval: 0 });
  try {
    return await work();
  } finally {
    await node().setAutomine(true);
  }
}

test('an account and a spend are read from the contract', async () => {
  const credits = creditsOn();
  const key = await account();
  const auth = await signed(key);
  const nobody: Hex = `0x${'11'.repeat(32)}`;
  expect(await credits.getAccount(nobody)).toEqual({ kind: 'answer', value: undefined });
  expect(await credits.getSpendAuth(spendAuthHash(auth))).toEqual({ kind: 'answer', value: undefined });
  expect(await credits.getAccount(commitmentOf(key))).toEqual({
    kind: 'answer',
    value: {
      spendingKey: privateKeyToAddress(key).toLowerCase(),
      token: chain.token,
      balance: 1_000n,
      nonce: 0n,
    },
  });
  expect(await credits.authorizeSpend(auth, waitMs)).toMatchObject({ kind: 'landed' });
  const { amount, expiry } = auth;
  expect(await credits.getSpendAuth(spendAuthHash(auth))).toEqual({
    kind: 'answer',
    value: { amount, operator, expiry, claimed: false },
  });
});

test('a spend lands once and is paid out once, and repetitions report the reason for their revert', async () => {
  const credits = creditsOn();
  const auth = await signed(await account());
  const authHash = spendAuthHash(auth);
  expect(await credits.claimPayment(authHash, operator, waitMs)).toEqual({
    kind: 'reverted',
    reason: 'auth_not_found',
  });
  const landed = await credits.authorizeSpend(auth, waitMs);
  const { number, hash } = await node().getBlock();
  expect(landed).toMatchObject({ kind: 'landed', block: { number, hash } });
  expect(await credits.authorizeSpend(auth, waitMs)).toEqual({ kind: 'reverted', reason: 'invalid_nonce' });
  const before = await chain.balance(operator);
  expect(await credits.claimPayment(authHash, operator, waitMs)).toMatchObject({ kind: 'landed' });
  expect(await credits.claimPayment(authHash, operator, waitMs)).toEqual({
    kind: 'reverted',
    reason: 'already_claimed',
  });
  expect(await chain.balance(operator)).toBe(before + auth.amount);
});

describe('a transaction that the contract would revert is never sent', () => {
  const faults: [string, (key: Hex) => Promise<SpendAuth>, string][] = [
    ['more than there is', (key) => signed(key, { amount: 1_001n }), 'insufficient_credits'],
    ['a nonce ahead', (key) => signed(key, { nonce: 1n }), 'invalid_nonce'],
    [
      'a stranger',
      async (key) => signed(generatePrivateKey(), { commitment: commitmentOf(key) }),
      'invalid_signature',
    ],
    ['an expired one', (key) => signed(key, { expiry: 1n }), 'spend_expired'],
    ['no account', (key) => signed(key, { commitment: `0x${'22'.repeat(32)}` }), 'account_not_found'],
  ];
  it.each(faults)('%s', async (_, make, reason) => {
    const auth = await make(await account());
    const count = await node().getTransactionCount({ address: operator });
    expect(await creditsOn().authorizeSpend(auth, waitMs)).toEqual({ kind: 'reverted', reason });
    expect(await node().getTransactionCount({ address: operator })).toBe(count);
  });
});

test('concurrent spends by two processes with one key all land, without a gap in the nonces', async () => {
  const keys = await Promise.all(Array.from({ length: 12 }, () => account()));
  const auths = await Promise.all(keys.map((key) => signed(key)));
  const [one, other] = [creditsOn(), creditsOn()];
  const count = await node().getTransactionCount({ address: operator });
  const answers = await Promise.all(
    auths.map((auth, index) => (index % 2 === 0 ? one : other).authorizeSpend(auth, waitMs)),
  );
  expect(answers.map((answer) => answer.kind)).toEqual(auths.map(() => 'landed'));
  expect(await node().getTransactionCount({ address: operator })).toBe(count + auths.length);
});

test('a transaction that does not land in time is unknown, and found on the chain later', async () => {
  const auth = await signed(await account());
  const other = await signed(await account());
  const count = await node().getTransactionCount({ address: operator });
  await stalled(async () => {
    expect(await creditsOn().authorizeSpend(auth, 100)).toMatchObject({ kind: 'unknown' });
    // another process, as after a restart: it continues behind what is under way
    expect(await creditsOn().authorizeSpend(other, 100)).toMatchObject({ kind: 'unknown' });
  });
  const credits = creditsOn();
  for (const one of [auth, other])
    await eventually(async () => {
      const answer = await credits.getSpendAuth(spendAuthHash(one));
      expect(answer).toMatchObject({ value: { amount: 100n, claimed: false } });
    });
  expect(await node().getTransactionCount({ address: operator })).toBe(count + 2);
});

test('a transaction that the node has dropped is sent again before the next one', async () => {
  const [first, second] = [await signed(await account()), await signed(await account())];
  const credits = creditsOn();
  await stalled(async () => {
    const lost = await credits.authorizeSpend(first, 100);
    const hash = lost.kind === 'unknown' ? lost.transaction : '0x';
    await node().dropTransaction({ hash });
  });
  expect(await credits.authorizeSpend(second, waitMs)).toMatchObject({ kind: 'landed' });
  expect(await credits.getSpendAuth(spendAuthHash(first))).toMatchObject({ value: { amount: 100n } });
});

test('a transaction whose nonce was used is sent again with a new nonce', async () => {
  const auth = await signed(await account());
  const credits = creditsOn();
  const sent = stalled(async () => {
    const count = await node().getTransactionCount({ address: operator });
    const answer = credits.authorizeSpend(auth, waitMs);
    await eventually(async () => {
      const pending = await node().getTransactionCount({ address: operator, blockTag: 'pending' });
      expect(pending).toBe(count + 1);
    });
    await node().impersonateAccount({ address: operator });
    // the same nonce for a higher fee
    const fee = 10n ** 12n;
    await node().sendTransaction({
      account: operator,
      chain: null,
      to: operator,
      nonce: count,
      maxFeePerGas: fee,
      maxPriorityFeePerGas: fee,
    });
    await node().stopImpersonatingAccount({ address: operator });
    return () => answer;
  });
  expect(await (await sent)()).toMatchObject({ kind: 'landed' });
});

test('a transaction whose fee is too low is sent again with a higher fee and the same nonce', async () => {
  const auth = await signed(await account());
  const count = await node().getTransactionCount({ address: operator });
  const sent = stalled(async () => {
    const answer = creditsOn().authorizeSpend(auth, waitMs);
    await eventually(async () => {
      const pending = await node().getTransactionCount({ address: operator, blockTag: 'pending' });
      expect(pending).toBe(count + 1);
    });
    await node().setNextBlockBaseFeePerGas({ baseFeePerGas: 10n ** 11n });
    await node().mine({ blocks: 1 });
    return () => answer;
  });
  expect(await (await sent)()).toMatchObject({ kind: 'landed' });
  expect(await node().getTransactionCount({ address: operator })).toBe(count + 1);
});

test('a payout that does not land is raised by whichever process follows it, and gets no second nonce', async () => {
  const auth = await signed(await account());
  const authHash = spendAuthHash(auth);
  const proxy = await startRpcProxy(chain.rpcUrl);
  // as nodes that estimate on the latest block
  proxy.lie = ({ method }) => (method === 'eth_estimateGas' ? { result: '0x30d40' } : undefined);
  const first = creditsOn({ rpcUrl: proxy.url });
  expect(await first.authorizeSpend(auth, waitMs)).toMatchObject({ kind: 'landed' });
  const count = await node().getTransactionCount({ address: operator });
  await stalled(async () => {
    const sent = await first.claimPayment(authHash, operator, 0);
    expect(await first.claimPayment(authHash, operator, 0)).toEqual(sent);
    const transaction = sent.kind === 'unknown' ? sent.transaction : '0x';
    // the transactions of others have raised the fees
    proxy.lie = ({ method, params }) =>
      method === 'eth_getBlockByNumber' && params[0] === 'latest'
        ? { result: { baseFeePerGas: '0x174876e800' } }
        : undefined;
    // as after a restart: this process has not sent it
    const second = creditsOn({ rpcUrl: proxy.url });
    passTime(3_100);
    const raised = await eventually(async () => {
      const followed = await second.followPayment(authHash, operator, transaction);
      if (followed.kind === 'answer' && followed.value !== transaction) return followed.value;
      throw new Error('its fee was not raised yet');
    });
    await node().mine({ blocks: 1 });
    expect(await second.findLanded(raised!)).toMatchObject({ value: { transaction: raised } });
  });
  expect(await first.getSpendAuth(authHash)).toMatchObject({ value: { claimed: true } });
  expect(await node().getTransactionCount({ address: operator })).toBe(count + 1);
});

test('no transaction offers more than the highest fee, also when it is raised or taken over', async () => {
  const [auth, later] = [await signed(await account()), await signed(await account())];
  const { baseFeePerGas } = await node().getBlock();
  const maxFeePerGasWei = (baseFeePerGas ?? 0n) + 3n * 10n ** 9n;
  const proxy = await startRpcProxy(chain.rpcUrl);
  const limited = creditsOn({ rpcUrl: proxy.url, maxFeePerGasWei });
  const sent = await stalled(async () => {
    const answer = await limited.authorizeSpend(auth, 0);
    const hash = answer.kind === 'unknown' ? answer.transaction : '0x';
    const feeOf = async (of: Hex) => (await node().getTransaction({ hash: of })).maxFeePerGas;
    expect(await feeOf(hash)).toBeLessThanOrEqual(maxFeePerGasWei);
    proxy.lie = ({ method }) =>
      method === 'eth_getBlockByNumber' ? { result: { baseFeePerGas: '0x174876e800' } } : undefined;
    expect(await limited.authorizeSpend(later, 0)).toMatchObject({ kind: 'too_expensive' });
    const pending = await node().getTransactionCount({ address: operator, blockTag: 'pending' });
    // its fee is compared with today's once in three seconds
    passTime(3_100);
    const followed = await limited.followPayment(spendAuthHash(auth), operator, hash);
    const latest = followed.kind === 'answer' ? (followed.value ?? hash) : hash;
    expect(await feeOf(latest)).toBeLessThanOrEqual(maxFeePerGasWei);
    expect(await node().getTransactionCount({ address: operator, blockTag: 'pending' })).toBe(pending);
    return latest;
  });
  await eventually(async () => {
    expect(await limited.findLanded(sent)).toMatchObject({ value: { transaction: sent } });
  });
});

test('a payout that the node has dropped is sent again by its process, and is gone for another one', async () => {
  const auth = await signed(await account());
  const authHash = spendAuthHash(auth);
  const credits = creditsOn();
  expect(await credits.authorizeSpend(auth, waitMs)).toMatchObject({ kind: 'landed' });
  const hash = await stalled(async () => {
    const sent = await credits.claimPayment(authHash, operator, 0);
    const transaction = sent.kind === 'unknown' ? sent.transaction : '0x';
    await node().dropTransaction({ hash: transaction });
    const gone = await creditsOn().followPayment(authHash, operator, transaction);
    expect(gone).toEqual({ kind: 'answer', value: undefined });
    return transaction;
  });
  expect(await credits.followPayment(authHash, operator, hash)).toEqual({ kind: 'answer', value: hash });
  // a node answers a sent transaction before it has mined its block
  await eventually(async () => {
    expect(await credits.getSpendAuth(authHash)).toMatchObject({ value: { claimed: true } });
  });
});

test('a key without ether sends nothing, and reports not_sent', async () => {
  const privateKey = generatePrivateKey();
  const auth = await signed(await account());
  const answer = await creditsOn({ privateKey }).authorizeSpend(auth, waitMs);
  expect(answer).toMatchObject({ kind: 'not_sent' });
});

test('an unreachable node, or an address without a contract, is never taken for a negative answer', async () => {
  const auth = await signed(await account());
  const away = creditsOn({ rpcUrl: 'http://127.0.0.1:1' });
  expect(await away.getAccount(auth.commitment)).toMatchObject({ kind: 'unavailable' });
  expect(await away.authorizeSpend(auth, waitMs)).toMatchObject({ kind: 'unavailable' });
  const nowhere = creditsOn({ contract: operator });
  expect(await nowhere.getAccount(auth.commitment)).toMatchObject({
    kind: 'unavailable',
    cause: 'malformed',
  });
});

test('a node that stops answering during a send leaves the transaction unknown', async () => {
  const auth = await signed(await account());
  const results: Record<string, unknown> = {
    eth_estimateGas: '0x30d40',
    eth_getBlockByNumber: { baseFeePerGas: '0x1' },
    eth_maxPriorityFeePerGas: '0x1',
    eth_getTransactionCount: '0x0',
    eth_getTransactionReceipt: null,
  };
  const stub = await startRpcStub((request) => {
    const { method } = request.body;
    if (method === 'eth_sendRawTransaction') request.response.destroy();
    else succeed(request, results[method] ?? null);
  });
  const answer = await creditsOn({ rpcUrl: stub.url }).authorizeSpend(auth, 200);
  expect(answer).toMatchObject({ kind: 'unknown' });
});

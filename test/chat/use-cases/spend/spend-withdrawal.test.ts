import { createTestClient, createWalletClient, type Hex, http } from 'viem';
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { expect, test } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { prepaidContractAddress } from '../../../../src/devnet/prepaid-contract.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { operator } from '../../../support/spend.ts';
import {
  ask,
  codeOf,
  expectSpendEvents,
  type SpendAccount,
  useSpendChain,
} from '../../../support/spend-gateway.ts';
import { eventually } from '../../../support/wait.ts';
import { withdrawalData } from '../../../support/withdrawal.ts';

const spends = useSpendChain();
const node = () => createTestClient({ mode: 'anvil', transport: http(spends.chain.rpcUrl) });
const recipient = privateKeyToAccount(generatePrivateKey()).address.toLowerCase() as Address;

/** Sends a withdrawal that goes before whatever waits beside it. */
async function withdraw({ key }: SpendAccount, amount: bigint): Promise<Hex> {
  const sender = createWalletClient({
    account: privateKeyToAccount(devnetKeys.spare),
    transport: http(spends.chain.rpcUrl),
  });
  const withdrawal = { key, recipient, amount, nonce: 0n };
  return sender.sendTransaction({
    chain: null,
    to: prepaidContractAddress,
    data: await withdrawalData(spends.chain.rpcUrl, withdrawal),
    gas: 300_000n,
    maxFeePerGas: 10n ** 12n,
    maxPriorityFeePerGas: 10n ** 12n,
  });
}

test('a withdrawal that lands before the spend leaves nothing to buy with', async () => {
  const gateway = await spends.gateway();
  const account = await spends.account(1_000_000n);
  const auth = await account.sign();
  const before = await spends.chain.balance(operator);
  await node().setAutomine(false);
  await node().setIntervalMining({ interval: 0 });
  try {
    const answer = ask(gateway, auth);
    await eventually(async () => expect((await node().getTxpoolStatus()).pending).toBe(1));
    await withdraw(account, 1_000_000n);
    await node().mine({ blocks: 1 });
    expect(await codeOf(await answer)).toBe('402 authorization_failed');
  } finally {
    await node().setAutomine(true);
  }
  expect(gateway.model.calls).toHaveLength(0);
  await eventually(() => expectSpendEvents(gateway, auth, ['spend_accepted', 'spend_released']));
  expect(await spends.chain.balance(operator)).toBe(before);
});

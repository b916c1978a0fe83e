import path from 'node:path';
import { type Abi, createPublicClient, createTestClient, type Hex, http } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { type Chain, startChain } from '../../src/devnet/chain.ts';
import { prepaidContractArtifact } from '../../src/devnet/contracts.ts';
import {
  commitmentOf,
  prepaidContractAddress,
  deployPrepaidContract,
  fundPrepaidAccount,
} from '../../src/devnet/prepaid-contract.ts';
import { callAs, readAt } from '../../src/devnet/deploy.ts';
import { deployRegistry } from '../../src/devnet/registry.ts';
import { balanceOf, deployTokens } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { type SpendAuth, spendAuthHash } from '../../src/accounts/rules/spend/spend-auth.ts';
import { operator, signSpend } from '../support/spend.ts';
import { signWithdrawal } from '../support/withdrawal.ts';
import { temporaryDir } from './killable.ts';

const artifact = prepaidContractArtifact;
const address = prepaidContractAddress;
const view = (url: string, functionName: string, args: readonly unknown[]) =>
  readAt(url, { address, artifact, functionName, args });

test('the prepaid contract is deployed at one address, on an older chain too, and its demo account is funded once', async () => {
  const stateFile = path.join(temporaryDir(), 'chain.json');
  const before = await startChain({ stateFile });
  await deployRegistry(await withTokens(before));
  await before.stop();

  const first = await startChain({ stateFile });
  const { token } = await deployTokens(first);
  await deployRegistry(first);
  const { prepaidContract, commitment, spendingPrivateKey } = await deployPrepaidContract(first, token);
  expect(prepaidContract).toBe('0xcf7ed3acca5a467e9e704c703e8d87f634fb0fc9');
  await fundPrepaidAccount(first, { prepaidContract, token, spendingPrivateKey, amountAtoms: 1n });
  await first.stop();

  const second = await startChain({ stateFile });
  await deployPrepaidContract(second, token);
  expect(await view(second.url, 'getAccount', [commitment])).toMatchObject({ balance: 1_000_000_001n });
  await second.stop();
});

async function withTokens(chain: Chain): Promise<Chain> {
  await deployTokens(chain);
  return chain;
}

describe('the prepaid contract', () => {
  let chain: Chain;
  let token: Address;
  beforeAll(async () => {
    chain = await startChain();
    ({ token } = await deployTokens(chain));
    await deployRegistry(chain);
    await deployPrepaidContract(chain, token);
  });
  afterAll(() => chain.stop());

  async function account(amountAtoms = 1_000n): Promise<Hex> {
    const key = generatePrivateKey();
    await fundPrepaidAccount(chain, {
      prepaidContract: address,
      token,
      spendingPrivateKey: key,
      amountAtoms,
    });
    return key;
  }
  const signed = (key: Hex, change: Partial<SpendAuth> = {}) =>
    signSpend({ chainId: chain.chainId, contract: address }, key, { amount: 100n, ...change });

  const call = (functionName: string, args: readonly unknown[], key: Hex = devnetKeys.spare) =>
    callAs(chain, key, { address, artifact, functionName, args });
  /** The name of the error that a call would revert with. */
  async function refusal(functionName: string, args: readonly unknown[], key: Hex = devnetKeys.spare) {
    const client = createPublicClient({ transport: http(chain.url) });
    const abi: Abi = artifact.abi;
    const from = privateKeyToAddress(key);
    const simulated = client.simulateContract({ address, abi, functionName, args, account: from });
    const error: unknown = await simulated.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return /Error: (\w+)\(/.exec(String(error))?.[1];
  }

  it('returns an unpaid spend to its account, only after it has expired', async () => {
    const node = createTestClient({ mode: 'anvil', transport: http(chain.url) });
    const [key, other] = [await account(), await account()];
    const expiry = BigInt(Math.floor(Date.now() / 1_000) + 600);
    const auth = await signed(key, { expiry });
    const authHash = spendAuthHash(auth);
    await call('authorizeSpend', [auth]);
    expect(await refusal('reclaimExpiredAuth', [authHash, auth.commitment])).toBe('NotExpiredYet');
    await node.increaseTime({ seconds: 700 });
    await node.mine({ blocks: 1 });
    expect(await refusal('claimPayment', [authHash, operator], devnetKeys.operator)).toBe('SpendExpired');
    expect(await refusal('reclaimExpiredAuth', [authHash, commitmentOf(other)])).toBe('CommitmentMismatch');
    await call('reclaimExpiredAuth', [authHash, auth.commitment]);
    expect(await view(chain.url, 'getAccount', [auth.commitment])).toMatchObject({ balance: 1_000n });
    expect(await refusal('reclaimExpiredAuth', [authHash, auth.commitment])).toBe('AlreadyClaimed');
  });

  it('accepts funds for an account from any sender, and pays withdrawals that its key has signed', async () => {
    const key = await account();
    const commitment = commitmentOf(key);
    const owner = privateKeyToAddress(key);
    expect(await refusal('fundCredits', [token, 1n, commitment, operator])).toBe('SpendingKeyMismatch');
    expect(await refusal('fundCredits', [operator, 1n, commitment, owner])).toBe('TokenMismatch');
    const recipient = privateKeyToAddress(generatePrivateKey());
    const signature = await signWithdrawal(chain.url, { key, recipient, amount: 400n, nonce: 0n });
    expect(await refusal('withdrawCredits', [commitment, recipient, 401n, 0n, signature])).toBe(
      'InvalidSignature',
    );
    await call('withdrawCredits', [commitment, recipient, 400n, 0n, signature]);
    expect(await balanceOf(chain.url, token, recipient)).toBe(400n);
    expect(await view(chain.url, 'getAccount', [commitment])).toMatchObject({ balance: 600n, nonce: 1n });
  });
});

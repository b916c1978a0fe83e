import { hashMessage } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../../../src/devnet/accounts.ts';
import { startChain, type Chain } from '../../../../src/devnet/chain.ts';
import { gasBurner, smartWallet } from '../../../../src/devnet/contracts.ts';
import { deployRegistry, setBroken, setPermitted } from '../../../../src/devnet/registry.ts';
import { deployTokens } from '../../../../src/devnet/token.ts';
import type { Address } from '../../../../src/base/values/primitives.ts';
import { createContractSignatureChecker } from '../../../../src/base/peers/rpc/contract-signature.ts';
import { createPermissionChecker } from '../../../../src/base/peers/rpc/permission.ts';
import { deployContract } from '../../../support/contracts.ts';

const permission = createPermissionChecker();
const signatures = createContractSignatureChecker();
const owner = privateKeyToAccount(devnetKeys.spare);
let chain: Chain;
let registry: Address;
let token: Address;

beforeAll(async () => {
  chain = await startChain();
  ({ token } = await deployTokens(chain));
  registry = await deployRegistry(chain);
});
afterAll(async () => {
  await permission.close();
  await signatures.close();
  await chain.stop();
});

function ask(caller: Address, serviceId = 1, contract = registry) {
  return permission.isPermitted({ rpcUrl: chain.url, contract, serviceIdType: 'uint64', serviceId, caller });
}

describe('the permission contract on a real chain', () => {
  const permitted = { kind: 'answer', permitted: true };
  const refused = { kind: 'answer', permitted: false };

  test('permits the permitted caller and the payer, only for service 1', async () => {
    expect(await ask(devnetAddress('permittedCaller'))).toEqual(permitted);
    expect(await ask(devnetAddress('payer'))).toEqual(permitted);
    expect(await ask(devnetAddress('refusedCaller'))).toEqual(refused);
    expect(await ask(devnetAddress('permittedCaller'), 2)).toEqual(refused);
  });

  test('refuses in the block in which a permission is revoked, and permits again', async () => {
    const caller = devnetAddress('thirdSpare');
    for (const isPermitted of [true, false, true]) {
      await setPermitted(chain, registry, { serviceId: 9, caller, permitted: isPermitted });
      expect(await ask(caller, 9)).toEqual(isPermitted ? permitted : refused);
    }
  });

  test('is unavailable while it reverts', async () => {
    await setBroken(chain, registry, true);
    const broken = await ask(devnetAddress('permittedCaller'));
    await setBroken(chain, registry, false);
    expect(broken).toMatchObject({ kind: 'unavailable', cause: 'reverted' });
    expect(await ask(devnetAddress('permittedCaller'))).toEqual(permitted);
  });

  test('is distinguished from an address without code and from another contract', async () => {
    const caller = devnetAddress('permittedCaller');
    expect(await ask(caller, 1, devnetAddress('payTo'))).toMatchObject({
      kind: 'unavailable',
      cause: 'no_contract',
    });
    expect(await ask(caller, 1, token)).toMatchObject({ kind: 'unavailable', cause: 'reverted' });
  });
});

describe('a signature checked by the account that signed it', () => {
  const digest = hashMessage('x402-authorize:1:4');
  const askWallet = async (account: Address, signed = digest) =>
    signatures.isValidSignature({
      rpcUrl: chain.url,
      account,
      digest,
      signature: await owner.sign({ hash: signed }),
    });
  const invalid = { kind: 'answer', valid: false, isContract: true };

  test('is valid in the wallet of the owner, only for the signed digest', async () => {
    const wallet = await deployContract(chain.url, smartWallet, [owner.address]);
    expect(await askWallet(wallet)).toEqual({ kind: 'answer', valid: true, isContract: true });
    expect(await askWallet(wallet, hashMessage('x402-authorize:1:5'))).toEqual(invalid);
  });

  test("is not valid in another owner's wallet", async () => {
    expect(await askWallet(await deployContract(chain.url, smartWallet, [devnetAddress('payer')]))).toEqual(
      invalid,
    );
  });

  test('is not valid where the contract runs out of gas, reverts or does not exist', async () => {
    expect(await askWallet(await deployContract(chain.url, gasBurner, []))).toEqual(invalid);
    expect(await askWallet(token)).toEqual(invalid);
    expect(await askWallet(devnetAddress('spare'))).toEqual({
      kind: 'answer',
      valid: false,
      isContract: false,
    });
  });
});

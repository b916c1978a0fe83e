import path from 'node:path';
import { createTestClient, http } from 'viem';
import { expect, test } from 'vitest';
import { devnetAddress } from '../../src/devnet/accounts.ts';
import { startChain } from '../../src/devnet/chain.ts';
import { callerRegistry } from '../../src/devnet/contracts.ts';
import { readAt } from '../../src/devnet/deploy.ts';
import { deployRegistry, registryAddress, setPermitted } from '../../src/devnet/registry.ts';
import { deployTokens } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { temporaryDir } from './killable.ts';

function isPermitted(rpcUrl: string, caller: Address): Promise<unknown> {
  const functionName = 'isPermittedCaller';
  const args = [1n, caller];
  return readAt(rpcUrl, { address: registryAddress, artifact: callerRegistry, functionName, args });
}

test('the registry is deployed at one address, on an older chain too, and keeps its changes', async () => {
  const stateFile = path.join(temporaryDir(), 'chain.json');
  const before = await startChain({ stateFile });
  await deployTokens(before);
  await before.stop();

  const first = await startChain({ stateFile });
  await deployTokens(first);
  expect(await deployRegistry(first)).toBe(registryAddress);
  expect(await deployRegistry(first)).toBe('0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0');
  const caller = devnetAddress('permittedCaller');
  expect(await isPermitted(first.url, caller)).toBe(true);
  await setPermitted(first, registryAddress, { serviceId: 1, caller, permitted: false });
  await first.stop();

  const second = await startChain({ stateFile });
  expect(await deployRegistry(second)).toBe(registryAddress);
  expect(await isPermitted(second.url, caller)).toBe(false);
  expect(await isPermitted(second.url, devnetAddress('payer'))).toBe(true);
  await second.stop();
});

test('the registry is not deployed over a token, and another contract at its address is an error', async () => {
  const chain = await startChain();
  await expect(deployRegistry(chain)).rejects.toThrow('nonce is 0 instead of 2');
  await deployTokens(chain);
  await deployRegistry(chain);
  const node = createTestClient({ mode: 'anvil', transport: http(chain.url) });
  await node.setCode({ address: registryAddress, bytecode: '0x00' });
  await expect(deployRegistry(chain)).rejects.toThrow("is not this devnet's caller registry");
  await chain.stop();
});

test('permissions can be changed concurrently', async () => {
  const chain = await startChain();
  await deployTokens(chain);
  const registry = await deployRegistry(chain);
  const callers = Array.from({ length: 5 }, (_, index): Address => `0x${String(index).padStart(40, '0')}`);
  await Promise.all(
    callers.map((caller) => setPermitted(chain, registry, { serviceId: 1, caller, permitted: true })),
  );
  expect(await Promise.all(callers.map((caller) => isPermitted(chain.url, caller)))).toEqual(
    callers.map(() => true),
  );
  await chain.stop();
});

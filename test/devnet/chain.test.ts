import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createPublicClient, encodeFunctionData, http } from 'viem';
import { mnemonicToAccount, privateKeyToAddress } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { devnetAddress, devnetKeys } from '../../src/devnet/accounts.ts';
import { multicall3Address, startChain } from '../../src/devnet/chain.ts';
import { multicall3, testToken } from '../../src/devnet/contracts.ts';
import { freePort } from '../../src/devnet/ports.ts';
import { isAlive } from '../../src/devnet/processes.ts';
import { balanceOf, deployTokens, mint } from '../../src/devnet/token.ts';
import { startInChild, temporaryDir, until } from './killable.ts';

const million = 1_000_000_000_000n;

describe('the local chain', () => {
  test('keeps its state from one start to the next, and leaves no process', async () => {
    const stateFile = path.join(temporaryDir(), 'chain.json');
    const first = await startChain({ stateFile });
    const { token, secondToken } = await deployTokens(first);
    await mint(first, token, devnetAddress('payTo'), 42n);
    await first.stop();
    await first.stop();
    expect(isAlive(first.pid)).toBe(false);

    const second = await startChain({ stateFile });
    expect(await deployTokens(second)).toEqual({ token, secondToken });
    expect(await balanceOf(second.url, token, devnetAddress('payTo'))).toBe(42n);
    expect(await balanceOf(second.url, secondToken, devnetAddress('payer'))).toBe(million);
    await second.stop();
  });

  test('ends when its parent is killed, with its state saved', async () => {
    const stateFile = path.join(temporaryDir(), 'chain.json');
    const { pid, killParent } = await startInChild('chain', stateFile);
    expect(isAlive(pid)).toBe(true);
    await killParent();
    await until(() => !isAlive(pid));
    expect(JSON.parse(readFileSync(stateFile, 'utf8'))).toHaveProperty('accounts');
  });

  test('reports a port that is taken', async () => {
    const chain = await startChain();
    const port = Number(new URL(chain.url).port);
    await expect(startChain({ port })).rejects.toThrow(`Port ${port} is taken`);
    await chain.stop();
  });

  test('is given a port that no outgoing connection can take before it', async () => {
    const ports = await Promise.all(Array.from({ length: 32 }, freePort));
    // Linux gives outgoing connections ports from 32768, all others from 49152.
    expect(ports.filter((chosen) => chosen < 1024 || chosen >= 32_768)).toEqual([]);
  });

  test('reports a damaged state file', async () => {
    const stateFile = path.join(temporaryDir(), 'chain.json');
    writeFileSync(stateFile, '{"block":{"num');
    await expect(startChain({ stateFile })).rejects.toThrow('is damaged');
  });

  test('finalizes blocks, and answers several reads in one call', async () => {
    const chain = await startChain();
    const client = createPublicClient({ transport: http(chain.url) });
    await until(async () => (await client.getBlock({ blockTag: 'finalized' })).number > 0n);
    const { token } = await deployTokens(chain);
    const symbol = encodeFunctionData({ abi: testToken.abi, functionName: 'symbol' });
    const results = await client.readContract({
      address: multicall3Address,
      abi: multicall3.abi,
      functionName: 'tryAggregate',
      args: [
        false,
        [
          { target: token, callData: symbol },
          { target: token, callData: '0x00000000' },
        ],
      ],
    });
    expect(results).toMatchObject([{ success: true }, { success: false }]);
    await chain.stop();
  });

  test('refuses another contract at the address of a token', async () => {
    const chain = await startChain();
    await mint(chain, (await deployTokens(chain)).token, devnetAddress('spare'), 1n);
    await setCode(chain.url, (await deployTokens(chain)).secondToken, '0x00');
    await expect(deployTokens(chain)).rejects.toThrow("is not this devnet's EURC");
    await chain.stop();
  });

  test('uses the keys that anvil funds', () => {
    const mnemonic = `${'test '.repeat(11)}junk`;
    const keys = Object.values(devnetKeys);
    const funded = keys.map((_, addressIndex) => mnemonicToAccount(mnemonic, { addressIndex }).address);
    expect(keys.map((key) => privateKeyToAddress(key))).toEqual(funded);
  });
});

async function setCode(rpcUrl: string, address: string, code: string): Promise<void> {
  const call = { jsonrpc: '2.0', id: 1, method: 'anvil_setCode', params: [address, code] };
  await fetch(rpcUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(call),
  });
}

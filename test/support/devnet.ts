import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { type Chain, startChain } from '../../src/devnet/chain.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { deployCheckpointAnchor } from '../../src/devnet/checkpoint-anchor.ts';
import { deployPrepaidContract } from '../../src/devnet/prepaid-contract.ts';
import { startFacilitator } from '../../src/devnet/facilitator.ts';
import { deployRegistry } from '../../src/devnet/registry.ts';
import { balanceOf, deployPlainToken, deployTokens, mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { metered } from './meter.ts';

/** A chain with the devnet's contracts and a real facilitator, for all tests of one file. */
export interface TestChain {
  readonly rpcUrl: string;
  readonly facilitatorUrl: string;
  readonly token: Address;
  readonly secondToken: Address;
  /** The permission contract. */
  readonly registry: Address;
  readonly chain: Chain;
  mint(to: Address, atoms: bigint, token?: Address): Promise<void>;
  balance(address: Address, token?: Address): Promise<bigint>;
}

export function useChain(): TestChain {
  let chain: Chain;
  let facilitator: Awaited<ReturnType<typeof startFacilitator>>;
  let tokens: Awaited<ReturnType<typeof deployTokens>>;
  let registry: Address;
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-chain-'));
  chmodSync(dir, 0o755);
  beforeAll(() =>
    metered('the chain', async () => {
      chain = await startChain({ port: 0 });
      tokens = await deployTokens(chain);
      registry = await deployRegistry(chain);
      // in the devnet's order, because addresses follow from it
      await deployPrepaidContract(chain, tokens.token);
      await deployCheckpointAnchor(chain);
      await deployPlainToken(chain);
      facilitator = await startFacilitator({
        rpcUrl: chain.url,
        chainId: chain.chainId,
        privateKey: devnetKeys.facilitator,
        port: 0,
      });
    }),
  );
  afterAll(async () => {
    await facilitator?.close();
    await chain?.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    get rpcUrl() {
      return chain.url;
    },
    get facilitatorUrl() {
      return facilitator.url;
    },
    get token() {
      return tokens.token;
    },
    get secondToken() {
      return tokens.secondToken;
    },
    get registry() {
      return registry;
    },
    get chain() {
      return chain;
    },
    mint: (to, atoms, token) => mint(chain, token ?? tokens.token, to, atoms),
    balance: (address, token) => balanceOf(chain.url, token ?? tokens.token, address),
  };
}

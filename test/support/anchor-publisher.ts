import { createTestClient, http } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import { expect, onTestFinished } from 'vitest';
import { checkpointAnchorAddress } from '../../src/devnet/checkpoint-anchor.ts';
import type { Hex } from '../../src/base/values/primitives.ts';
import { createAnchor } from '../../src/audit/peers/anchors/create-anchor.ts';
import { network } from '../finance/use-cases/refunds/support.ts';
import { testSigner } from './log.ts';

export interface AnchorPublisher {
  readonly key: Hex;
  /** In lower case. */
  readonly by: Hex;
  publish(size: number, origin?: string): Promise<void>;
}

/** Its own account with ether, which publishes to the checkpoint contract of a devnet. Stopped when the test ends. */
export async function startPublisher(rpcUrl: string): Promise<AnchorPublisher> {
  const key = generatePrivateKey();
  const by = privateKeyToAddress(key);
  const node = createTestClient({ mode: 'anvil', transport: http(rpcUrl) });
  await node.setBalance({ address: by, value: 10n ** 18n });
  const anchor = createAnchor({
    kind: 'chain',
    name: 'chain',
    everyMs: 20,
    network,
    chainId: 84_532,
    rpcUrl,
    contract: checkpointAnchorAddress,
    privateKey: key,
  });
  onTestFinished(() => anchor.close());
  return {
    key,
    by: by.toLowerCase() as Hex,
    async publish(size, origin = testSigner.name) {
      const head = { origin, size, root: Buffer.alloc(32, size), note: '' };
      expect(await anchor.publish(head, { kind: 'none' })).toEqual({ kind: 'done' });
    },
  };
}

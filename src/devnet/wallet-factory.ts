import type { Address } from '../base/values/primitives.ts';
import { walletFactory } from './contracts.ts';
import { type ChainLocation, deployOnce } from './deploy.ts';

/** After the checkpoint anchor. */
const deployerNonce = 5;

/**
 * Deploys the factory of wallets after the checkpoint anchor, unless a restored chain already has it.
 * @returns its lower-case address
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy the checkpoint anchor first
 */
export function deployWalletFactory(chain: ChainLocation): Promise<Address> {
  return deployOnce(chain, {
    label: 'wallet factory',
    artifact: walletFactory,
    args: [],
    nonce: deployerNonce,
  });
}

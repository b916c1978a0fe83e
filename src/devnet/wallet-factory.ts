import type { Address } from '../base/values/primitives.ts';
import { walletFactory } from './contracts.ts';
import { type ChainLocation, deployOnce } from './deploy.ts';

/** After the token without EIP-3009. */
const deployerNonce = 6;

/**
 * Deploys the factory of wallets after the token without EIP-3009, unless a restored chain already has it.
 * @returns its lower-case address
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy that token first
 */
export function deployWalletFactory(chain: ChainLocation): Promise<Address> {
  return deployOnce(chain, {
    label: 'wallet factory',
    artifact: walletFactory,
    args: [],
    nonce: deployerNonce,
  });
}

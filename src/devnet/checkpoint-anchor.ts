import type { Address } from '../base/values/primitives.ts';
import { checkpointAnchor } from './contracts.ts';
import { type ChainLocation, deployedAddress, deployOnce } from './deploy.ts';

/** After the prepaid contract. */
const deployerNonce = 4;

/** Where the heads of logs can be written on every devnet, deployed or not. */
export const checkpointAnchorAddress: Address = deployedAddress(deployerNonce);

/**
 * Deploys the contract after the prepaid contract, unless a restored chain already has it.
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy the prepaid contract first
 */
export function deployCheckpointAnchor(chain: ChainLocation): Promise<Address> {
  return deployOnce(chain, {
    label: 'checkpoint anchor',
    artifact: checkpointAnchor,
    args: [],
    nonce: deployerNonce,
  });
}

import type { Address } from '../base/values/primitives.ts';
import { devnetAddress } from './accounts.ts';
import { callerRegistry } from './contracts.ts';
import { callAsAnyone, type ChainLocation, deployedAddress, deployOnce } from './deploy.ts';

/** After both tokens. */
const deployerNonce = 2;

/** The address of the registry on every devnet, deployed or not; `config/dev.toml` names it. */
export const registryAddress: Address = deployedAddress(deployerNonce);

/** The payer too, so that a job with `payer_is_caller` can be tried with the key at hand. */
const permittedRoles = ['permittedCaller', 'payer'] as const;
const permittedService = 1n;

/**
 * Deploys the registry of permitted callers after the tokens, with those that service 1 permits. Contracts that a restored
 * chain already has stay unchanged, changed permissions included; a chain from before there was a registry gets it.
 * @returns its lower-case address
 * @throws when another contract has the address, or the deployer's nonces were used otherwise: deploy the tokens first
 */
export function deployRegistry(chain: ChainLocation): Promise<Address> {
  return deployOnce(chain, {
    label: 'caller registry',
    artifact: callerRegistry,
    args: [permittedService, permittedRoles.map(devnetAddress)],
    nonce: deployerNonce,
  });
}

/** Which callers may call which service. */
export interface Permission {
  readonly serviceId: number;
  readonly caller: Address;
  readonly permitted: boolean;
}

/** Permits or refuses a caller from the next block on; resolves when that block is there. */
export function setPermitted(
  chain: ChainLocation,
  registry: Address,
  { serviceId, caller, permitted }: Permission,
): Promise<void> {
  const args = [BigInt(serviceId), caller, permitted];
  return callAsAnyone(chain, {
    address: registry,
    artifact: callerRegistry,
    functionName: 'setPermitted',
    args,
  });
}

/** While it is broken, every question about a permission reverts. */
export function setBroken(chain: ChainLocation, registry: Address, isBroken: boolean): Promise<void> {
  const args = [isBroken];
  return callAsAnyone(chain, {
    address: registry,
    artifact: callerRegistry,
    functionName: 'setBroken',
    args,
  });
}

import {
  type NetworkPreset,
  type NetworkName,
  networkPresets,
  facilitatorPresets,
  type FacilitatorPreset,
  type TokenPresetName,
  tokenPresets,
} from '../../../base/config/presets.ts';
import { secureBaseUrl } from '../../../base/config/urls.ts';
import { checkValue } from './check-value.ts';
import { ArgumentError } from '../../../base/terminal/arguments.ts';
import type { Caip2 } from '../../../base/values/primitives.ts';

/** A network, its dollar and who settles there. */
export interface ChosenNetwork extends Pick<NetworkPreset, 'name' | 'isTest'> {
  readonly network: Caip2;
  readonly token: TokenPresetName;
  readonly facilitator: FacilitatorPreset;
}

export const networkNames = Object.keys(networkPresets) as NetworkName[];

/**
 * Reads the name of a network, and of a facilitator, for which a URL stands as well.
 * @throws ArgumentError for a network that has no preset, and a facilitator that does not settle there
 */
export function chooseNetwork(name: string, facilitator: string | undefined): ChosenNetwork {
  const known = networkNames.find((one) => one === name);
  if (known === undefined)
    throw new ArgumentError(
      `the network is one of ${networkNames.join(', ')}; for another chain write the configuration by hand (docs/configuration.md)`,
    );
  const preset: NetworkPreset = networkPresets[known];
  const { network } = tokenPresets[preset.token];
  return { ...preset, network, facilitator: readFacilitator(facilitator, preset) };
}

function readFacilitator(
  given: string | undefined,
  { name, facilitators }: NetworkPreset,
): FacilitatorPreset {
  if (given?.includes('://')) {
    checkValue('--facilitator', secureBaseUrl, given);
    const known = Object.values(facilitatorPresets).find(({ url }) => url === given);
    return known ?? { url: given, key: 'none' };
  }
  const chosen = facilitators.find((one) => one === (given ?? facilitators[0]));
  if (chosen !== undefined) return facilitatorPresets[chosen];
  throw new ArgumentError(`--facilitator for ${name} is ${facilitators.join(', ')}, or a URL`);
}

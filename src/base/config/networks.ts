import type { Caip2 } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import { publicRpcUrls } from './public-rpcs.ts';
import type { Path } from './mistakes.ts';
import type { Report } from './report.ts';
import { readTables } from './table.ts';
import type { ConfirmMode } from './root.ts';
import { rpcUrlOrPublic } from './urls.ts';
import { network } from './values.ts';

export interface NetworkConfig {
  readonly rpcUrl: string;
  /** `public`: the one that viem has for the chain, because the operator says so. */
  readonly source: 'configured' | 'public';
  /** Its place in the file. */
  readonly at: Path;
}

/** An entry of `[[networks]]`. */
interface NetworkEntry {
  /** An address, or `public`. */
  readonly rpcUrl: string;
  readonly at: Path;
}

export const networkShape = {
  id: network.describe('The chain'),
  rpc_url: rpcUrlOrPublic.describe(
    'Confirms settlements without the facilitator; "public" takes the public RPC of the chain, with a warning',
  ),
} as const;

/** Reads `[[networks]]`: RPC addresses by network. What is wrong is reported. */
export function readNetworks(raw: unknown, report: Report): Map<Caip2, NetworkEntry> {
  const entries = new Map<Caip2, NetworkEntry>();
  const seen = new Map<Caip2, number>();
  for (const [index, { at, values, whole }] of readTables(
    networkShape,
    raw,
    ['networks'],
    report,
  ).entries()) {
    const earlier = values.id && seen.get(values.id);
    if (earlier !== undefined) report.mistake([...at, 'id'], `repeats the id of networks[${earlier}]`);
    else if (values.id !== undefined) seen.set(values.id, index);
    if (whole !== undefined) entries.set(whole.id, { rpcUrl: whole.rpcUrl, at: [...at, 'rpc_url'] });
  }
  return entries;
}

/**
 * The accepted tokens' networks with the RPC of each: the configured one, or the public one of the chain where the operator asks for it:
 * a stranger's node decides about money. Warns of a public one, in capitals where nothing can confirm a settlement; that is a mistake if
 * settlements must be confirmed.
 */
export async function chooseNetworks(
  tokens: readonly AcceptedToken[],
  configured: ReadonlyMap<Caip2, NetworkEntry>,
  confirm: ConfirmMode,
  report: Report,
): Promise<Map<Caip2, NetworkConfig>> {
  const chosen = new Map<Caip2, NetworkConfig>();
  const chainIds = new Map(tokens.map((token) => [token.network, token.chainId]));
  const isPublic = (id: Caip2): boolean => configured.get(id)?.rpcUrl === 'public';
  const asked = new Set([...chainIds].flatMap(([id, chainId]) => (isPublic(id) ? [chainId] : [])));
  const known = asked.size === 0 ? new Map<number, string>() : await publicRpcUrls(asked);
  for (const [id, chainId] of chainIds) {
    const entry = configured.get(id);
    const url = isPublic(id) ? known.get(chainId) : entry?.rpcUrl;
    if (entry && url !== undefined) {
      chosen.set(id, { rpcUrl: url, source: isPublic(id) ? 'public' : 'configured', at: entry.at });
      if (isPublic(id)) report.warning(entry.at, withPublicRpc(id, url));
    } else if (entry) report.mistake(entry.at, `no public RPC of ${id} is known: name one`);
    else if (confirm !== 'required') report.warning(['networks'], withoutRpc(id));
    else report.mistake(['networks'], `confirm = "required" needs an rpc_url for ${id}`);
  }
  return chosen;
}

function withPublicRpc(id: Caip2, url: string): string {
  return `the public RPC ${url} confirms the settlements on ${id}: name your own before production`;
}

function withoutRpc(id: Caip2): string {
  return (
    `SETTLEMENTS ON ${id} ARE NOT CONFIRMED ON THE CHAIN: no rpc_url is configured for it, nor "public". ` +
    'The gateway trusts the facilitator, and where settling again gives no result, the operator must decide'
  );
}

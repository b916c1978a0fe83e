import { type Caip2, chainIdOf } from '../values/primitives.ts';
import type { AcceptedToken } from '../values/token.ts';
import type { Path, Report } from './mistakes.ts';
import { type ConfigOf, readTables } from './table.ts';
import type { ConfirmMode } from './root.ts';
import { rpcUrlOrPublic } from './urls.ts';
import { network } from './values.ts';
import { plainHttpWarning } from './hosts.ts';

/**
 * The public RPC addresses that viem knows, by chain id; chains that it does not know, or only over plain http, are left out.
 * viem has many chains, so they are loaded only here, and only when an RPC was left out.
 */
export async function publicRpcUrls(chainIds: ReadonlySet<number>): Promise<Map<number, string>> {
  const chains = await import('viem/chains');
  const urls = new Map<number, string>();
  for (const chain of Object.values(chains)) {
    // The module's functions and tables have no id; several chains share one, and the first by name is the plain one.
    if (!('id' in chain) || typeof chain.id !== 'number' || !chainIds.has(chain.id) || urls.has(chain.id))
      continue;
    // one over plain http says what anyone on the way wants it to
    const url = chain.rpcUrls.default.http.find((one) => !plainHttpWarning('rpc_url', one));
    if (url !== undefined) urls.set(chain.id, url);
  }
  return urls;
}

/** A chain's RPC. */
export interface NetworkConfig {
  readonly rpcUrl: string;
  /** `public`: the one that viem has for the chain, because the operator says so. */
  readonly source: 'configured' | 'public';
  /** Its place in the file. */
  readonly at: Path;
}

/** `[[networks]]` by chain; undefined for a chain whose entry was reported. */
export type Networks = ReadonlyMap<Caip2, NetworkConfig | undefined>;

export const networkShape = {
  id: network.describe('The chain'),
  rpc_url: rpcUrlOrPublic.describe(
    'RPC for everything on this chain; `"public"`: its public RPC, with a warning',
  ),
} as const;

/**
 * Reads `[[networks]]`. An RPC is the configured one, or the public one of the chain where the operator asks for it, with a warning: a
 * stranger's node decides about money. What is wrong is reported.
 */
export async function readNetworks(raw: unknown, report: Report): Promise<Networks> {
  const tables = readTables(networkShape, raw, ['networks'], report);
  const asked = tables.flatMap(({ whole }) =>
    whole?.rpcUrl === 'public' ? (chainIdOf(whole.id) ?? []) : [],
  );
  const known = asked.length === 0 ? new Map<number, string>() : await publicRpcUrls(new Set(asked));
  const networks = new Map<Caip2, NetworkConfig | undefined>();
  const seen = new Map<Caip2, number>();
  for (const [index, { at, values, whole }] of tables.entries()) {
    if (values.id === undefined) continue;
    const earlier = seen.get(values.id);
    if (earlier !== undefined) report.mistake([...at, 'id'], `repeats the id of networks[${earlier}]`);
    else seen.set(values.id, index);
    networks.set(values.id, whole && toNetwork(whole, [...at, 'rpc_url'], known, report));
  }
  return networks;
}

function toNetwork(
  { id, rpcUrl }: ConfigOf<typeof networkShape>,
  at: Path,
  known: ReadonlyMap<number, string>,
  report: Report,
): NetworkConfig | undefined {
  if (rpcUrl !== 'public') return { rpcUrl, source: 'configured', at };
  const url = known.get(chainIdOf(id) ?? 0);
  if (url === undefined) report.mistake(at, `no public RPC of ${id} is known: name one`);
  else report.warning(at, `the public RPC ${url} is believed about ${id}: name your own before production`);
  return url === undefined ? undefined : { rpcUrl: url, source: 'public', at };
}

/** The RPC of the chain that a key of another table names. That there is none is reported at that key. */
export function rpcUrlOf(
  chain: Caip2 | undefined,
  at: Path,
  { networks, report }: { readonly networks: Networks; readonly report: Report },
): string | undefined {
  if (chain === undefined) return undefined;
  if (!networks.has(chain)) report.mistake(at, `has no RPC: [[networks]] does not name ${chain}`);
  return networks.get(chain)?.rpcUrl;
}

/**
 * The accepted tokens' networks that have an RPC. Warns in capitals where nothing can confirm a settlement; that is a mistake if
 * settlements must be confirmed.
 */
export function chooseNetworks(
  tokens: readonly AcceptedToken[],
  networks: Networks,
  confirm: ConfirmMode,
  report: Report,
): Map<Caip2, NetworkConfig> {
  const chosen = new Map<Caip2, NetworkConfig>();
  for (const id of new Set(tokens.map((token) => token.network))) {
    const chain = networks.get(id);
    if (chain) chosen.set(id, chain);
    else if (confirm !== 'required') report.warning(['networks'], withoutRpc(id));
    else report.mistake(['networks'], `confirm = "required" needs an rpc_url for ${id}`);
  }
  return chosen;
}

function withoutRpc(id: Caip2): string {
  return (
    `SETTLEMENTS ON ${id} ARE NOT CONFIRMED ON THE CHAIN: no rpc_url is configured for it, nor "public". ` +
    'The gateway trusts the facilitator, and if settling again gives no result, the operator must decide'
  );
}

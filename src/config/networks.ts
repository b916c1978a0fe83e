import type { Caip2 } from '../domain/values/primitives.ts';
import type { AcceptedToken } from '../domain/values/token.ts';
import { publicRpcUrls } from './public-rpcs.ts';
import type { Path } from './mistakes.ts';
import type { Report } from './report.ts';
import { readTables } from './table.ts';
import type { ConfirmMode } from './root.ts';
import { rpcUrl } from './urls.ts';
import { network } from './values.ts';

export interface NetworkConfig {
  readonly rpcUrl: string;
  /** `public`: the operator named none, so it is the one that viem has for the chain. */
  readonly source: 'configured' | 'public';
  /** Its place in the file. */
  readonly at: Path;
}

/** An entry of `[[networks]]`. */
interface NetworkEntry {
  readonly rpcUrl: string;
  readonly at: Path;
}

const networkShape = { id: network, rpc_url: rpcUrl } as const;

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
 * The accepted tokens' networks with the RPC of each: the configured one, else the public one of the chain.
 * Warns where the operator did not choose, in capitals where nothing can confirm a settlement; that is a mistake if settlements
 * must be confirmed.
 */
export async function chooseNetworks(
  tokens: readonly AcceptedToken[],
  configured: ReadonlyMap<Caip2, NetworkEntry>,
  confirm: ConfirmMode,
  report: Report,
): Promise<Map<Caip2, NetworkConfig>> {
  const chosen = new Map<Caip2, NetworkConfig>();
  const left = new Map<Caip2, number>();
  for (const token of tokens) {
    const entry = configured.get(token.network);
    if (entry === undefined) left.set(token.network, token.chainId);
    else chosen.set(token.network, { ...entry, source: 'configured' });
  }
  if (left.size === 0) return chosen;
  const known = await publicRpcUrls(new Set(left.values()));
  for (const [id, chainId] of left) {
    const url = known.get(chainId);
    if (url !== undefined) chosen.set(id, { rpcUrl: url, source: 'public', at: ['networks'] });
    if (url !== undefined) report.warning(['networks'], withPublicRpc(id, url));
    else if (confirm !== 'required') report.warning(['networks'], withoutRpc(id));
    else report.mistake(['networks'], `confirm = "required" needs an rpc_url for ${id}`);
  }
  return chosen;
}

function withPublicRpc(id: Caip2, url: string): string {
  return `none for ${id}, so the public RPC ${url} confirms its settlements: name your own before production`;
}

function withoutRpc(id: Caip2): string {
  return (
    `SETTLEMENTS ON ${id} ARE NOT CONFIRMED ON THE CHAIN: no rpc_url is configured and no public one is known. ` +
    'The gateway trusts the facilitator, and where settling again gives no result, the operator must decide'
  );
}

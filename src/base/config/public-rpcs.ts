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

import type { Config } from '../../base/config/config.ts';
import { processEnvironment } from '../../base/config/environment.ts';
import { loadConfig } from '../../base/config/load.ts';
import { chainIdOf } from '../../base/values/primitives.ts';
import { type Chain, createChain } from '../../payments/peers/chain/chain.ts';
import { openPublications, type Publications } from '../peers/anchors/publications.ts';
import { type ChainScanner, createScanner } from '../../payments/peers/chain/transfer-scan.ts';

export async function readConfig(file: string): Promise<Config> {
  return (await loadConfig(file, processEnvironment())).config;
}

/**
 * The chains of a gateway's configuration and of `rpcUrls`, which take precedence. The caller closes them.
 */
export function openChains(
  config: Config | undefined,
  rpcUrls: ReadonlyMap<string, string> = new Map(),
): ReadonlyMap<string, Chain> {
  return openEach(config, rpcUrls, (_network, chainId, rpcUrl) =>
    createChain({ chainId, rpcUrl, timeoutMs: 10_000 }),
  );
}

/** A node may search many blocks for one request. */
const scanTimeoutMs = 30_000;

/** The same for searching their logs. */
export function openScanners(
  config: Config | undefined,
  rpcUrls: ReadonlyMap<string, string>,
): ReadonlyMap<string, ChainScanner> {
  return openEach(config, rpcUrls, (network, chainId, rpcUrl) =>
    createScanner({ network, chainId, rpcUrl, timeoutMs: scanTimeoutMs }),
  );
}

/** Where the configuration publishes tree heads of its log. `rpcUrls` take precedence. The caller closes them. */
export function openPublicationsOf(
  config: Config | undefined,
  rpcUrls: ReadonlyMap<string, string>,
): readonly Publications[] {
  const log = config?.log;
  if (!log) return [];
  return log.anchors.flatMap((anchor) =>
    anchor.kind === 'chain'
      ? openPublications(anchor, log.origin, rpcUrls.get(anchor.network) ?? anchor.rpcUrl)
      : [],
  );
}

function openEach<T>(
  config: Config | undefined,
  rpcUrls: ReadonlyMap<string, string>,
  open: (network: string, chainId: number, rpcUrl: string) => T,
): ReadonlyMap<string, T> {
  const configured = [...(config?.jobs?.networks ?? [])].map(
    ([network, { rpcUrl }]) => [network, rpcUrl] as const,
  );
  const urls = new Map([...configured, ...rpcUrls]);
  return new Map(
    [...urls].map(([network, rpcUrl]) => [network, open(network, chainIdOf(network) ?? 0, rpcUrl)]),
  );
}

export async function closeChains(chains: ReadonlyMap<string, Chain>): Promise<void> {
  await Promise.all([...chains.values()].map((chain) => chain.close()));
}

import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { noteSigner } from '../../src/base/values/log/checkpoint.ts';
import type { PaymentNetwork } from '../chaos/environment.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { gatewayConfig, usualConfig } from '../chaos/gateway-config.ts';
import { createGatewaySlot, type GatewaySlot } from '../chaos/gateway-process.ts';
import type { Cluster } from './cluster.ts';
import { ledgerUrl } from './ledger.ts';

export interface Gateways {
  readonly gateways: readonly GatewaySlot[];
  /** The folder that gets their checkpoints. */
  readonly anchors: string;
  readonly verifierKey: string;
}

export interface GatewaysOptions {
  readonly dir: string;
  readonly cluster: Cluster;
  readonly network: PaymentNetwork;
  /** Where a runner takes pushed calls. */
  readonly pushPort: number;
  readonly payTo: Address;
}

const origin = 'ha.example/log';
const seedHex = '5e'.repeat(32);

/** A gateway for each HAProxy, with one log and a folder of anchors. */
export async function startGateways(options: GatewaysOptions): Promise<Gateways> {
  const { dir, cluster, network, pushPort, payTo } = options;
  const [token, secondToken] = network.tokens;
  const { registry, facilitatorUrl } = network;
  const urls = { facilitatorUrl, rpcUrl: network.chain.url, pushUrl: `http://127.0.0.1:${pushPort}` };
  const anchors = path.join(dir, 'anchors');
  mkdirSync(anchors);
  const seedFile = path.join(dir, 'log.seed');
  writeFileSync(seedFile, seedHex, { mode: 0o600 });
  const log = `
[log]
origin = "${origin}"
key = "file:${seedFile}"

[[log.anchors]]
kind = "folder"
location = "${anchors}"
every_ms = 1_000
`;
  const gateways = await Promise.all(
    cluster.primaries.map(async (primary, index) => {
      const name = String(index + 1);
      const port = await freePort();
      const configFile = path.join(dir, `gateway-${name}.toml`);
      writeFileSync(
        configFile,
        gatewayConfig({ port, ...urls, token, secondToken, registry, payTo, variant: usualConfig }) + log,
      );
      return createGatewaySlot({
        name,
        url: `http://127.0.0.1:${port}`,
        root: repositoryRoot,
        configFile,
        databaseUrl: ledgerUrl(primary),
        // no gateway may end, also while there is no primary
        isExcused: () => false,
      });
    }),
  );
  return {
    gateways,
    anchors,
    verifierKey: noteSigner(origin, [Buffer.from(seedHex, 'hex')]).verifierKeys[0],
  };
}

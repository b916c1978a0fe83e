import path from 'node:path';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount, type PrivateKeyAccount, privateKeyToAddress } from 'viem/accounts';
import { devnetKeys, lowerCase } from '../../src/devnet/accounts.ts';
import { type Chain, startChain } from '../../src/devnet/chain.ts';
import { startFacilitator } from '../../src/devnet/facilitator.ts';
import { startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { deployCheckpointAnchor } from '../../src/devnet/checkpoint-anchor.ts';
import { deployPrepaidContract } from '../../src/devnet/prepaid-contract.ts';
import { deployRegistry } from '../../src/devnet/registry.ts';
import { approvePermit2, deployPlainToken, deployTokens, mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { type PostgresServer, startPostgresServer } from './postgres-server.ts';
import type { Random } from './random.ts';
import type { Rig, Scope } from './rig.ts';
import { runTollbook } from './tollbook-command.ts';

/** A chain with its tokens, a facilitator, funded payers. */
export interface PaymentNetwork {
  readonly chain: Chain;
  /** In the order of the offers. The last one is paid with by Permit2, which all payers have approved for all of them. */
  readonly tokens: readonly [Address, Address, Address];
  readonly registry: Address;
  readonly facilitatorUrl: string;
  /** Of the model's server, without a path. */
  readonly modelUrl: string;
  readonly payers: readonly PrivateKeyAccount[];
}

/** What all runs of one invocation share. */
export interface Environment extends PaymentNetwork {
  /** For configs and logs. */
  readonly dir: string;
  /** The directory of the program under test; it contains `src/`. */
  readonly root: string;
  readonly postgres: PostgresServer;
  /** A fresh, migrated database. */
  createDatabase(name: string): Promise<void>;
  dropDatabase(name: string): Promise<void>;
}

/** Few payers, so that a facilitator that confuses payments finds other payments of the same payer. */
const payerCount = 3;
const initialAtoms = 10n ** 15n;
const template = 'chaos_template';

export async function startEnvironment(
  rig: Rig,
  random: Random,
  root = repositoryRoot,
): Promise<Environment> {
  const network = await startNetwork(rig, random);
  const postgres = await startPostgresServer(path.join(rig.dir, 'pg'));
  rig.defer(() => postgres.stop());
  await postgres.run(`create database ${template}`);
  await migrate(root, postgres.url(template));
  return {
    dir: rig.dir,
    root,
    ...network,
    postgres,
    createDatabase: (name) => postgres.run(`create database ${name} template ${template}`),
    dropDatabase: (name) => postgres.run(`drop database if exists ${name} with (force)`),
  };
}

export async function startNetwork(scope: Scope, random: Random): Promise<PaymentNetwork> {
  const chain = await startChain();
  scope.defer(() => chain.stop());
  const { token, secondToken } = await deployTokens(chain);
  const registry = await deployRegistry(chain);
  await deployPrepaidContract(chain, token);
  await deployCheckpointAnchor(chain);
  const plainToken = await deployPlainToken(chain);
  const model = scope.keep(await startModelUpstream({ port: 0 }));
  const { url: rpcUrl, chainId } = chain;
  const facilitator = scope.keep(
    await startFacilitator({ rpcUrl, chainId, privateKey: devnetKeys.facilitator }),
  );
  const payers = Array.from({ length: payerCount }, () => privateKeyToAccount(random.hex32()));
  const tokens = [token, secondToken, plainToken] as const;
  const mints = payers.flatMap(({ address }) =>
    tokens.map((asset) => mint(chain, asset, address, initialAtoms)),
  );
  await Promise.all(mints);
  for (const asset of tokens)
    await Promise.all(payers.map((account) => approvePermit2(chain, asset, account)));
  return {
    chain,
    tokens,
    registry,
    facilitatorUrl: facilitator.url,
    modelUrl: new URL(model.url).origin,
    payers,
  };
}

/** Where the payments and the payouts of one run go, and the block before them. */
export async function drawPayees({ chain }: Pick<PaymentNetwork, 'chain'>, random: Random) {
  const addressOf = (name: string): Address => lowerCase(privateKeyToAddress(random.fork(name).hex32()));
  return {
    payTo: addressOf('pay to'),
    recipient: addressOf('recipient'),
    fromBlock: await createPublicClient({ transport: http(chain.url) }).getBlockNumber(),
  };
}

/** Uses the migrations of the program under test: a planted bug may be in them. */
export async function migrate(root: string, url: string): Promise<void> {
  const { code, output } = await runTollbook({ root }, url, ['migrate']);
  if (code !== 0) throw new Error(`tollbook migrate ended with ${code}: ${output}`);
}

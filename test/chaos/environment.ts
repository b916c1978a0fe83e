import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { childEnvironment } from '../support/child-environment.ts';
import { devnetKeys } from '../../src/devnet/accounts.ts';
import { type Chain, startChain } from '../../src/devnet/chain.ts';
import { startFacilitator } from '../../src/devnet/facilitator.ts';
import { startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { deployPrepaidContract } from '../../src/devnet/prepaid-contract.ts';
import { deployRegistry } from '../../src/devnet/registry.ts';
import { deployTokens, mint } from '../../src/devnet/token.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { type PostgresServer, startPostgresServer } from './postgres-server.ts';
import type { Random } from './random.ts';

/** A chain with its tokens, a facilitator, funded payers. */
export interface PaymentNetwork {
  readonly chain: Chain;
  /** In the order of the offers. */
  readonly tokens: readonly [Address, Address];
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
  close(): Promise<void>;
}

/** Few payers, so that a facilitator that confuses payments finds other payments of the same payer. */
const payerCount = 3;
const initialAtoms = 10n ** 15n;
const template = 'chaos_template';

export async function startEnvironment(random: Random, root = repositoryRoot): Promise<Environment> {
  const dir = mkdtempSync(path.join(tmpdir(), 'tollbook-chaos-'));
  chmodSync(dir, 0o755);
  const closing: (() => Promise<unknown>)[] = [async () => rmSync(dir, { recursive: true, force: true })];
  const close = async (): Promise<void> => {
    for (const end of closing.toReversed()) await end();
  };
  try {
    const network = await startNetwork(random, closing);
    const postgres = await startPostgresServer(path.join(dir, 'pg'));
    closing.push(() => postgres.stop());
    await postgres.run(`create database ${template}`);
    await migrate(root, postgres.url(template));
    return {
      dir,
      root,
      ...network,
      postgres,
      createDatabase: (name) => postgres.run(`create database ${name} template ${template}`),
      dropDatabase: (name) => postgres.run(`drop database if exists ${name} with (force)`),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** @param closing gets what ends each part, as soon as it has started */
export async function startNetwork(
  random: Random,
  closing: (() => Promise<unknown>)[],
): Promise<PaymentNetwork> {
  const chain = await startChain();
  closing.push(() => chain.stop());
  const { token, secondToken } = await deployTokens(chain);
  const registry = await deployRegistry(chain);
  await deployPrepaidContract(chain, token);
  const model = await startModelUpstream({ port: 0 });
  closing.push(() => model.close());
  const facilitator = await startFacilitator({
    rpcUrl: chain.url,
    chainId: chain.chainId,
    privateKey: devnetKeys.facilitator,
  });
  closing.push(() => facilitator.close());
  const payers = Array.from({ length: payerCount }, () => privateKeyToAccount(random.hex32()));
  const mints = payers.flatMap(({ address }) =>
    [token, secondToken].map((asset) => mint(chain, asset, address, initialAtoms)),
  );
  await Promise.all(mints);
  return {
    chain,
    tokens: [token, secondToken],
    registry,
    facilitatorUrl: facilitator.url,
    modelUrl: new URL(model.url).origin,
    payers,
  };
}

/** Uses the migrations of the program under test: a planted bug may be in them. */
export async function migrate(root: string, url: string): Promise<void> {
  const child = spawn(process.execPath, ['src/app/cli/tollbook.ts', 'migrate'], {
    cwd: root,
    env: { ...childEnvironment(), DATABASE_URL: url },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`tollbook migrate ended with ${code}`);
}

import path from 'node:path';
import { signerOf } from '../../../audit/use-cases/log/configured-log.ts';
import type { Config } from '../../../base/config/config.ts';
import { type DemoKeys, demoKeys } from '../../../devnet/demo-keys.ts';
import { type DemoOperator, openDemoOperator, type DemoUser } from '../../../devnet/demo-user.ts';
import { type DevnetDescription, earlierSecrets } from '../../../devnet/description.ts';
import { operatorScopes } from '../../../base/values/operator-scope.ts';
import { jobKey } from '../../../base/values/job.ts';
import { findOperator, issueOperatorToken } from '../../../accounts/use-cases/operator-tokens.ts';
import { signerIn } from '../../../base/values/log/log-generation.ts';
import { readLogGeneration } from '../../../audit/store/log.ts';
import { openDatabase, openPool } from '../../../ledger/store/database.ts';
import { openLane } from '../../../ledger/store/lane.ts';
import type { RunningGateway } from '../../running-gateway.ts';
import type { DevnetFacts } from './devnet-process.ts';

interface DevnetSecrets {
  /** Has every scope. */
  readonly operatorToken: string;
  readonly keys: DemoKeys;
  /** Of the log. */
  readonly generation: number;
}

/** Tokens and keys; those of the last start in this folder as long as they are valid. */
export async function devnetSecrets(dir: string, url: string): Promise<DevnetSecrets> {
  const pool = openPool({ url, maxConnections: 1 });
  const lane = openLane({ url, flushers: 1 });
  const ledger = { pool, db: openDatabase(pool), lane };
  try {
    const { operator_token: earlier, routing } = await earlierSecrets(dir);
    const isKept = earlier !== undefined && (await findOperator(ledger, earlier)) !== undefined;
    const operatorToken = isKept
      ? earlier
      : (await issueOperatorToken(ledger, { name: 'devnet', scopes: operatorScopes })).token;
    const { generation } = await readLogGeneration(pool);
    return { operatorToken, generation, keys: await demoKeys(ledger, routing) };
  } finally {
    await lane.close();
    await pool.end();
  }
}

/** The demo user as an operator; the one of the last start in this folder is kept. */
export async function demoOperator(
  dir: string,
  url: string,
  { identity }: Config,
  { email }: DemoUser,
): Promise<DemoOperator> {
  if (!identity) throw new Error('the development configuration needs [identity]');
  const pool = openPool({ url, maxConnections: 1 });
  const lane = openLane({ url, flushers: 1 });
  try {
    const { demo_operator: earlier } = await earlierSecrets(dir);
    return await openDemoOperator({ pool, lane, settings: identity }, email, earlier);
  } finally {
    await lane.close();
    await pool.end();
  }
}

/** The content of `devnet.json`. */
export function describe(
  dir: string,
  config: Config,
  devnet: DevnetFacts,
  given: DevnetSecrets & {
    readonly databaseUrl: string;
    readonly gateway: Pick<RunningGateway, 'url' | 'routesUrl'>;
    readonly demoUser: DemoUser;
    readonly demoOperator: DemoOperator;
  },
): DevnetDescription {
  const { url, routesUrl } = given.gateway;
  if (routesUrl === undefined) throw new Error('the development configuration needs [[routes]]');
  return {
    gateway_url: url,
    routes_url: routesUrl,
    config: path.relative('.', path.join(dir, 'gateway.toml')),
    rpc_url: devnet.rpcUrl,
    chain_id: devnet.chainId,
    network: devnet.network,
    token: devnet.token,
    second_token: devnet.secondToken,
    plain_token: devnet.plainToken,
    pay_to: devnet.payTo,
    facilitator_url: devnet.facilitatorUrl,
    database_url: given.databaseUrl,
    runner_token: devnet.runnerToken,
    operator_token: given.operatorToken,
    checkpoint_public_key: config.log ? signerIn(signerOf(config.log), given.generation).verifierKeys[0] : '',
    payer_private_key: devnet.payerPrivateKey,
    demo_user: given.demoUser,
    demo_operator: given.demoOperator,
    callers: devnet.callers,
    parity_contract: devnet.parityContract,
    credits_contract: devnet.prepaid.prepaidContract,
    operator: devnet.prepaid.operator,
    commitment: devnet.prepaid.commitment,
    spending_private_key: devnet.prepaid.spendingPrivateKey,
    jobs: describeJobs(config),
    routing: {
      ...describeModels(config),
      ...given.keys,
      siwe_domain: new URL(url).host,
      mail_dir: path.relative('.', config.identity?.mailDir ?? path.join(dir, 'mail')),
    },
  };
}

function describeJobs({ jobs, topUps, runners }: Config): DevnetDescription['jobs'] {
  const leased = new Set(runners.filter(({ mode }) => mode === 'lease').flatMap(({ services }) => services));
  const topUpJobs = new Set(topUps.map(jobKey));
  const deliveryOf = (key: string, serviceId: number) => {
    if (topUpJobs.has(key)) return 'top_up';
    if (jobs?.routes?.all.has(key)) return 'route';
    return leased.has(serviceId) ? 'lease' : 'push';
  };
  return [...(jobs?.jobPrices.keys() ?? [])].map((key) => {
    const [serviceId, jobIndex] = key.split('/').map(Number) as [number, number];
    const policy = jobs?.jobPolicies.get(key);
    return {
      service_id: serviceId,
      job_index: jobIndex,
      invocation_mode: policy?.invocationMode ?? 'disabled',
      ...(policy?.authMode && { auth_mode: policy.authMode }),
      delivery: deliveryOf(key, serviceId),
    };
  });
}

function describeModels({ chat }: Config): Pick<DevnetDescription['routing'], 'free_model' | 'paid_model'> {
  const free = chat?.models.find(({ price }) => price === undefined);
  const paid = chat?.models.find(({ price }) => price !== undefined);
  if (!free || !paid) throw new Error('the development configuration needs a free and a paid model');
  return { free_model: free.name, paid_model: paid.name };
}

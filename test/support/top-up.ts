import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts';
import { startModelUpstream } from '../../src/devnet/model-upstream.ts';
import { payForOneJob } from '../../src/devnet/client.ts';
import type { Address, Hex } from '../../src/base/values/primitives.ts';
import type { RecordedEvent } from '../../src/ledger/rules/event.ts';
import { createDatabase, type TestDatabase } from './database.ts';
import type { TestChain } from './devnet.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from './gateway.ts';
import { type Browser, createBrowser, identitySecret, signInByWallet } from './identity.ts';
import { allEvents } from './invariants.ts';
import { oneModel } from './chat-gateway.ts';
import { whenOver } from './shared.ts';

/** Job 9/0 is sold for 10 USDC, or as much EURC, of more worth; 9/1 for 1.000001 USDC. */
const topUpJobs = `
[job_prices.9]
0 = "3063725490196078"
1 = "306372549019609"

[[job_policies]]
service_id = 9
job_index = 0
invocation_mode = "public_paid"

[[job_policies]]
service_id = 9
job_index = 1
invocation_mode = "public_paid"
`;

const topUps = (rates: string) => `
[[top_ups]]
service_id = 9
job_index = 0
currency_per_token = ${rates}

[[top_ups]]
service_id = 9
job_index = 1
currency_per_token = { USDC = "1" }
`;

/** What a token is worth, for job 9/0. Without any rates, the jobs sell no credit. */
export const rates = '{ USDC = "1", EURC = "1.08123456789" }';

/** Tables of a gateway that sells credit as jobs 9/0 and 9/1. */
export const topUpTables = topUpJobs + topUps(rates);

/** A gateway that sells credit; one without chat does not serve it, and the calls wait. */
function topUpOptions(
  options: Partial<TestGatewayOptions> & Pick<TestGatewayOptions, 'chain' | 'database'>,
  modelUrl: string,
  { isServed = true, atRates = rates, identity = '' }: Selling = {},
): TestGatewayOptions {
  return {
    ...options,
    jobs: topUpJobs,
    top: `features = [${isServed ? '"x402", "chat"' : '"x402"'}]\n${options.top ?? ''}`,
    tables: `
[identity]
secret = "env:IDENTITY_SECRET"
${identity}
${atRates && topUps(atRates)}
${oneModel(modelUrl)}
${options.tables ?? ''}`,
    env: { IDENTITY_SECRET: identitySecret },
  };
}

interface Selling {
  /** Keys of `[identity]`. */
  readonly identity?: string;
  readonly isServed?: boolean;
  readonly atRates?: string;
}

export const topUpJob = '/x402/jobs/9/0';

export interface TopUpGateway extends TestGateway {
  readonly database: TestDatabase;
  readonly options: TestGatewayOptions;
  /** A page of the gateway, for one person. */
  browser(): Browser;
}

/** A gateway that sells credit for chat, with a model upstream. Stopped when the test ends. */
export async function startTopUpGateway(
  chain: TestGatewayOptions['chain'],
  { isServed = true, atRates = rates, identity = '', ...more }: Partial<TestGatewayOptions> & Selling = {},
): Promise<TopUpGateway> {
  const model = await startModelUpstream({ port: 0 });
  whenOver(() => model.close());
  const database = more.database ?? (await createDatabase());
  const options = topUpOptions({ ...more, chain, database }, model.url, { isServed, atRates, identity });
  const gateway = await startTestGateway(options);
  return { ...gateway, database, options, browser: () => createBrowser(gateway.url, '203.0.113.1') };
}

/** A wallet that holds 100 USDC and nothing else. */
export async function fundedWallet(chain: Pick<TestChain, 'mint'>) {
  const key: Hex = generatePrivateKey();
  const account = privateKeyToAccount(key);
  await chain.mint(account.address.toLowerCase() as Address, 100_000_000n);
  return { key, account, payer: account.address.toLowerCase() as Address };
}

export type FundedWallet = Awaited<ReturnType<typeof fundedWallet>>;

/** Pays for a package with the official client, and returns what the receipt tells. */
export async function buyCredit(gatewayUrl: string, privateKey: Hex, jobIndex = 0) {
  const paid = await payForOneJob({ gatewayUrl, privateKey, serviceId: 9, jobIndex, body: 'credit, please' });
  return {
    callId: paid.body.call_id,
    digest: paid.body.quote_digest,
    result: JSON.parse(paid.result.toString('utf8')) as Record<'account' | 'credited' | 'balance', string>,
  };
}

/** A user who has signed in with the wallet. */
export async function signedIn(
  gateway: Pick<TopUpGateway, 'browser'>,
  { account }: Pick<FundedWallet, 'account'>,
): Promise<{ readonly browser: Browser; readonly userId: string }> {
  const browser = gateway.browser();
  const answer = await signInByWallet(browser, account);
  if (answer.status !== 200) throw new Error(`signing in: ${answer.status} ${answer.text}`);
  return { browser, userId: answer.json.user.id };
}

type OfType<T extends RecordedEvent['type']> = Extract<RecordedEvent, { type: T }>;

/** The events of one type, in their order. */
export async function eventsOf<T extends RecordedEvent['type']>(
  { db }: TestDatabase,
  type: T,
): Promise<OfType<T>[]> {
  return (await allEvents(db)).filter((event): event is OfType<T> => event.type === type);
}

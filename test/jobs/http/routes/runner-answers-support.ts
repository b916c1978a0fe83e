import { beforeAll } from 'vitest';
import { devnetKeys } from '../../../../src/devnet/accounts.ts';
import { approvePermit2 } from '../../../../src/devnet/token.ts';
import type { ConstantChanges } from '../../../../src/base/config/constants.ts';
import type { TestDatabase } from '../../../support/database.ts';
import { type TestChain, useChain } from '../../../support/devnet.ts';
import { payTo } from '../../../support/gateway.ts';
import { expectSoundLedger } from '../../../support/invariants.ts';
import { asRunner, type Leased, leasingRunner } from '../../../support/leases.ts';
import { header, offerOf } from '../../../support/payer.ts';
import type { signUpto } from '../../../support/upto.ts';
import { startRouteGateway } from './support.ts';

export const place = '/transcribe';
export const used = 3_000n;
export const metered = 'charge_header = "x-price"';

export const soldJob = (more = metered) => `
[[routes]]
service_id = 7
job_index = 0
methods = ["POST"]
path = "${place}"
upstream = "job:1/0"
price = "0.01 USD"
${more}`;

export const pushed = (url: string) => `
[[runners]]
services = [1]
mode = "push"
url = "${url}"
token = "env:RUNNER_TOKEN"
`;

async function startRunnerRoute(
  chain: TestChain,
  {
    more = metered,
    tables = leasingRunner,
    constants = {},
    database: own,
  }: {
    readonly more?: string;
    readonly tables?: string;
    readonly constants?: ConstantChanges;
    readonly database?: TestDatabase;
  } = {},
) {
  const gateway = await startRouteGateway({
    ...(own && { database: own }),
    chain,
    upstream: '',
    routes: soldJob(more),
    tables,
    constants,
  });
  const { paid, database } = gateway;
  const offer = async () => offerOf(await paid.post(place, { body: 'one' }));
  const pay = (payment: object) => paid.post(place, { body: 'one', headers: header(payment) });
  const receiptOf = async ({ accepted }: Awaited<ReturnType<typeof signUpto>>) =>
    (await gateway.get(`/x402/receipts/${accepted.extra['quoteDigest']}`)).json;
  const eventsOf = async () => database.asOwner((owner) => expectSoundLedger(database.db, owner));
  return { gateway, database, offer, pay, receiptOf, eventsOf };
}

type RunnerRoute = Awaited<ReturnType<typeof startRunnerRoute>>;

/** A chain whose payer has approved Permit2, for all tests of one file, and gateways that sell the job on it. */
export function useRunnerRoutes() {
  const chain = useChain();
  beforeAll(() => approvePermit2(chain.chain, chain.token, devnetKeys.payer));
  return {
    chain,
    start: (options?: Parameters<typeof startRunnerRoute>[1]) => startRunnerRoute(chain, options),
    /** What was paid so far. */
    balance: () => chain.balance(payTo),
  };
}

/** Who gave the call up that a request has made; undefined while it is open. */
export async function givenUpBy({ eventsOf }: RunnerRoute): Promise<string | undefined> {
  const event = (await eventsOf()).find(({ type }) => type === 'operator_discarded');
  return event?.type === 'operator_discarded' ? event.data.operator : undefined;
}

export function complete(
  { gateway }: Pick<RunnerRoute, 'gateway'>,
  { call_id, lease_id }: Leased,
  price?: string,
) {
  const result = { content_type: 'text/plain', body_base64: Buffer.from('done').toString('base64') };
  return asRunner(gateway, `/runner/calls/${call_id}/complete`, { lease_id, result, price });
}

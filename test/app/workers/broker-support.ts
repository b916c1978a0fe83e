import { jetstream, jetstreamManager, type JsMsg } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import {
  type CallReport,
  createRunner,
  type Handler,
  job,
  type Runner,
  type RunnerError,
  type RunnerOptions,
} from '../../../src/runner/index.ts';
import { brokerNames } from '../../../src/base/values/broker/names.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import type { TestChain } from '../../support/devnet.ts';
import {
  runnerSecret,
  startTestGateway,
  type TestGateway,
  type TestGatewayOptions,
} from '../../support/gateway.ts';
import { isNatsInstalled, type NatsCluster, type NatsOptions, startNatsCluster } from '../../support/nats.ts';
import { operatorOf } from '../../support/operator.ts';
import { eventually } from '../../support/wait.ts';

export const absence = isNatsInstalled ? '' : ': NOT CHECKED, nats-server NOT INSTALLED';

/** Servers for the tests of a file, if they are installed. */
export function useNats(options?: NatsOptions): () => NatsCluster {
  let cluster: NatsCluster | undefined;
  beforeAll(async () => {
    if (isNatsInstalled) cluster = await startNatsCluster(options);
  });
  afterAll(() => cluster?.stop());
  return () => {
    if (!cluster) throw new Error('there is no nats-server');
    return cluster;
  };
}

let brokers = 0;

/** A name of streams that no other test uses. */
export function ownName(): string {
  brokers += 1;
  return `t${process.pid}-${brokers}`;
}

/** A gateway that hands the calls of service 1 to a broker. */
export async function gatewayOn(
  nats: Pick<NatsCluster, 'urls'>,
  {
    name,
    takeWithinSecs = 120,
    maxBytes = 16_777_216,
    isBrokerUp = true,
    ...options
  }: {
    readonly name: string;
    readonly database: TestDatabase;
    readonly chain: TestChain;
    readonly takeWithinSecs?: number;
    readonly maxBytes?: number;
    /** What its status says of the broker before the test continues. */
    readonly isBrokerUp?: boolean;
  } & Partial<TestGatewayOptions>,
): Promise<TestGateway> {
  const tables = `
[[runners]]
name = "worker"
services = [1]
mode = "jetstream"
token = "env:RUNNER_TOKEN"

[jetstream]
servers = ${JSON.stringify(nats.urls)}
replicas = 1
`;
  const gateway = await startTestGateway({
    ...options,
    top: `ledger_name = "${name}"`,
    tables,
    constants: { jetstream: { maxBytes, takeWithinSecs }, delivery: { backoffCapMs: 1 } },
  });
  await brokerIs(gateway, options.database, isBrokerUp);
  return gateway;
}

/** A gateway on a fresh database, which hands the calls of service 1 to a broker under its own name. */
export async function startOnBroker(
  nats: Pick<NatsCluster, 'urls'>,
  options: Omit<Parameters<typeof gatewayOn>[1], 'name' | 'database'>,
) {
  const [database, name] = [await createDatabase(), ownName()];
  return { database, name, gateway: await gatewayOn(nats, { name, database, ...options }) };
}

const operators = new WeakMap<TestDatabase, Promise<{ readonly authorization: string }>>();

/** Waits until the gateway's status says so of the broker; returns what it says. */
export async function brokerIs(
  gateway: TestGateway,
  database: TestDatabase,
  ok: boolean,
): Promise<{ readonly detail?: string }> {
  const known = operators.get(database) ?? operatorOf(database, ['status:read']);
  operators.set(database, known);
  const operator = await known;
  return eventually(async () => {
    const { broker } = (await gateway.get('/status', operator)).json.jobs;
    expect(broker).toMatchObject({ ok });
    return broker;
  });
}

export interface Consuming {
  readonly runner: Runner;
  readonly connection: NatsConnection;
  readonly errors: RunnerError[];
  readonly calls: CallReport[];
}

export async function connectTo({ urls }: Pick<NatsCluster, 'urls'>): Promise<NatsConnection> {
  const connection = await connect({ servers: [...urls], maxReconnectAttempts: -1, reconnectTimeWait: 200 });
  onTestFinished(() => connection.close());
  return connection;
}

/** A runner of job 1/0 that takes its calls from the broker; both end with the test. */
export async function consuming(
  nats: Pick<NatsCluster, 'urls'>,
  name: string,
  handler: Handler,
  options: Partial<RunnerOptions> & { readonly leaseSecs?: number } = {},
): Promise<Consuming> {
  const connection = await connectTo(nats);
  const errors: RunnerError[] = [];
  const calls: CallReport[] = [];
  const runner = createRunner({
    jobs: [job({ serviceId: 1, jobIndex: 0, on: { x402: handler } })],
    onError: (error) => errors.push(error),
    onCall: (report) => calls.push(report),
    ...options,
  });
  const { leaseSecs } = options;
  void runner.consume({
    connection,
    jetstream: jetstream(connection),
    runner: 'worker',
    token: runnerSecret,
    name,
    ...(leaseSecs !== undefined && { leaseSecs }),
  });
  onTestFinished(() => runner.stop({ graceMs: 0 }));
  return { runner, connection, errors, calls };
}

/** The next message for the runner, as the broker has it. */
export async function nextMessageOn(nats: Pick<NatsCluster, 'urls'>, name: string): Promise<JsMsg> {
  const { consumers } = jetstream(await connectTo(nats));
  const consumer = await consumers.get(brokerNames(name).callStream, 'worker');
  const message = await consumer.next({ expires: 50_000 });
  if (!message) throw new Error('no message came');
  return message;
}

export async function managerOn(nats: Pick<NatsCluster, 'urls'>) {
  const connection = await connectTo(nats);
  return jetstreamManager(connection, { checkAPI: false });
}

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { EventOf } from '../../../../src/ledger/rules/event.ts';
import { readTriggerProgress } from '../../../../src/calls/store/trigger-cursors.ts';
import { createDatabase, type TestDatabase } from '../../../support/database.ts';
import { useChain } from '../../../support/devnet.ts';
import { networkOf } from '../../../support/gateway.ts';
import { allEvents, expectSoundLedger } from '../../../support/invariants.ts';
import { destroy, type Program, spawnGateway, temporaryFolder } from '../../../support/program.ts';
import { startTestRunner } from '../../../support/runner.ts';
import { eventually } from '../../../support/wait.ts';
import { receiver, startEventChain, transferEvent } from './support.ts';

const chain = useChain();

interface Fleet {
  /** Starts a gateway; it is up when the promise resolves. */
  start(): Promise<Program>;
  /** Kills a gateway as a machine does that loses its power, and starts another one in its place. */
  replace(at: number): Promise<void>;
  readonly gateways: Program[];
}

/** Real gateway processes on one ledger. */
async function startFleet(
  database: TestDatabase,
  size: number,
  runnerUrl: string,
  triggers: string,
): Promise<Fleet> {
  const file = path.join(temporaryFolder(), 'gateway.toml');
  const text = readFileSync('config/dev.toml', 'utf8')
    .replaceAll(/127\.0\.0\.1:840[25]/g, '127.0.0.1:0')
    .replaceAll('http://127.0.0.1:8412', chain.rpcUrl)
    .replaceAll('http://127.0.0.1:8413', chain.facilitatorUrl)
    .replaceAll('http://127.0.0.1:8414/calls', runnerUrl);
  writeFileSync(file, `${text}\n[delivery]\ntimeout_ms = 5_000\n${triggers}`);
  const constants = { delivery: { backoffCapMs: 1, leaseMarginSecs: 0 } };
  const start = async (): Promise<Program> => {
    const program = spawnGateway(file, constants, {
      DATABASE_URL: database.url,
      TOLLBOOK_RUNNER_TOKEN: 'a-runner-token-of-enough-characters',
    });
    onTestFinished(() => destroy(program));
    await program.says(/"msg":"listening"/);
    return program;
  };
  const gateways = await Promise.all(Array.from({ length: size }, start));
  return {
    start,
    gateways,
    async replace(at) {
      const gateway = gateways[at];
      gateway?.kill('SIGKILL');
      await gateway?.exited;
      gateways[at] = await start();
    },
  };
}

async function triggeredIn(database: TestDatabase): Promise<EventOf<'call_triggered'>['data'][]> {
  const events = await allEvents(database.db);
  return events.flatMap((event) => (event.type === 'call_triggered' ? event.data : []));
}

test('a schedule fires once at each of its times across four processes, which are killed one after the other', async () => {
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const fleet = await startFleet(
    database,
    4,
    runner.url,
    `[[triggers]]
name = "each-second"
kind = "cron"
service_id = 1
job_index = 0
schedule = "* * * * * *"
missed = "all"
`,
  );
  await eventually(async () => expect(await triggeredIn(database)).not.toEqual([]));
  const replaced = fleet.gateways.length;
  for (let at = 0; at < replaced; at += 1) {
    await fleet.replace(at);
    const before = (await triggeredIn(database)).length;
    await eventually(async () => expect((await triggeredIn(database)).length).toBeGreaterThan(before));
  }
  // all at once: the times meanwhile are missed by everyone, and fired afterwards
  await Promise.all(fleet.gateways.map((_, at) => fleet.replace(at)));
  const whenBack = Date.now();
  await eventually(async () => {
    const last = (await triggeredIn(database)).at(-1);
    expect(Date.parse(last?.trigger_id ?? '')).toBeGreaterThan(whenBack);
  });
  for (const gateway of fleet.gateways) gateway.kill('SIGTERM');
  await Promise.all(fleet.gateways.map(({ exited }) => exited));

  const times = (await triggeredIn(database))
    .map(({ trigger_id: id }) => Date.parse(id))
    .toSorted((a, b) => a - b);
  const first = times[0] ?? 0;
  // one for each second, none left out and none twice
  expect(times).toEqual(times.map((_, at) => first + at * 1_000));
  expect(times.length).toBeGreaterThan(replaced);
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

test('the events of a contract make one call each through kills of both processes and a reorg, and none is lost', async () => {
  // the chain of the payments has its own id
  const events = await startEventChain({ chainId: 31_337 });
  onTestFinished(() => events.stop());
  const database = await createDatabase();
  const runner = await startTestRunner(() => ({ status: 200, body: 'done' }));
  const fleet = await startFleet(
    database,
    2,
    runner.url,
    `[[triggers]]
name = "deposits"
kind = "chain"
service_id = 1
job_index = 0
network = "eip155:31337"
addresses = ["${events.token}"]
event = "${transferEvent}"
filters = { to = "${receiver}" }
confirmations = 1
${networkOf('eip155:31337', events.url)}`,
  );
  const calls = () => triggeredIn(database);
  const isSeen = async (): Promise<void> => {
    const { rows } = await database.pool.query(
      `select 1 from tollbook.task where kind = 'chain_trigger' and payload->>'reached' is not null`,
    );
    expect(rows).toHaveLength(1);
  };
  await eventually(isSeen);
  const minted = new Set<string>();
  const mint = async (...atoms: number[]): Promise<void> => {
    for (const hash of await events.mint(...atoms)) minted.add(hash);
  };
  const transactions = async (): Promise<Set<string>> =>
    new Set((await calls()).map(({ log }) => log?.transaction ?? ''));

  await mint(1, 2, 3);
  await fleet.replace(0);
  await mint(4, 5);
  await eventually(async () => expect(await transactions()).toEqual(minted));

  // replaced blocks with calls on record: one of the two lands again elsewhere, beside a new one
  const height = await events.height();
  const again = await events.signMint(6);
  minted.add(await events.send(again));
  await mint(7);
  await events.mine(2);
  await eventually(async () => expect(await transactions()).toEqual(minted));
  fleet.gateways[1]?.kill('SIGKILL');
  await events.reorg(height, [again]);
  await mint(8, 9);
  await fleet.replace(0);
  await mint(10);
  await fleet.replace(1);
  await eventually(async () => expect(await transactions()).toEqual(minted));
  await eventually(() => expect(new Set(runner.deliveries.map(({ id }) => id)).size).toBe(minted.size));
  const values = runner.deliveries.map(
    ({ body }) => (JSON.parse(body.toString()) as { args: { value: string } }).args.value,
  );
  expect(new Set(values)).toEqual(new Set(['1', '2', '3', '4', '5', '6', '7', '8', '9', '10']));
  // the blocks of all events have been read again
  await events.mine(3);
  const last = (await events.height()) - 1n;
  await eventually(async () => {
    const [progress] = (await readTriggerProgress(database.pool)).chains;
    expect(progress?.cursor?.number).toBeGreaterThanOrEqual(last);
  });
  expect(await calls()).toHaveLength(minted.size);
  expect((await calls())[0]).toMatchObject({
    trigger: 'chain',
    trigger_name: 'deposits',
    log: { network: 'eip155:31337' },
  });
  await database.asOwner((owner) => expectSoundLedger(database.db, owner));
});

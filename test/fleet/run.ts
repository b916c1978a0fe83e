import { createRandom } from '../chaos/random.ts';
import { type Rig, seconds } from '../chaos/rig.ts';
import { type RunnerRun, type RunnerSlot, startRunnerSlot } from '../chaos/runner-slot.ts';
import { mustHold, pause } from '../chaos/until.ts';
import type { NatsCluster } from '../support/nats.ts';
import { type Audit, beginAudit, countOpenCalls, readAudit } from './audit.ts';
import { fleetConfig, type FleetMode, makeCalls, startFleetGateways } from './gateways.ts';

export interface FleetOptions {
  /** Of this fleet alone. */
  readonly rig: Rig;
  readonly mode: FleetMode;
  /** Of its own migrated database. */
  readonly databaseUrl: string;
  /** For the mode `jetstream`. */
  readonly nats?: NatsCluster;
  readonly runners: number;
  readonly calls: number;
  /** Runs of each runner at once. */
  readonly concurrency: number;
  /** Kills runners, and servers of the broker, one at a time. */
  readonly kills: boolean;
  readonly seed: string;
  readonly say: (line: string) => void;
}

export interface FleetReport {
  readonly mode: FleetMode;
  readonly calls: number;
  readonly runs: number;
  /** Runs of a call beyond its first. */
  readonly duplicates: number;
  readonly lost: number;
  /** Calls that came with more than one idempotency key, or shared one. */
  readonly wrongKeys: number;
  /** Attempts that ran in more than one process. */
  readonly sharedAttempts: number;
  readonly audit: Audit;
  /** Gateways that ended, with their last words. */
  readonly died: readonly string[];
  readonly killedRunners: number;
  readonly killedServers: number;
  /** From the first call in the outbox that could be taken to the last one completed. */
  readonly ms: number;
}

/** A run, and the process of the fleet that made it. */
type Run = RunnerRun & { readonly by: string };

const longestMs = 900_000;
const pollMs = 200;

/** Lets a fleet of runners do the calls, and compares what they wrote with what the database saw. */
export async function runFleet(options: FleetOptions): Promise<FleetReport> {
  const { rig, mode, databaseUrl, nats, calls, concurrency, kills, say } = options;
  const config = fleetConfig(mode, nats?.urls ?? []);
  await beginAudit(databaseUrl);
  say(`${mode}: recording ${calls} calls`);
  await makeCalls(databaseUrl, config, calls);
  const gateways = await startFleetGateways(rig, config, databaseUrl);
  await Promise.all(gateways.map((gateway) => gateway.untilUp()));
  const urls = gateways.map(({ url }) => url);
  const fleet = Array.from({ length: options.runners }, (_, index) => {
    const where = nats ? nats.urls.join() : (urls[index % urls.length] ?? '');
    return startRunnerSlot(rig, { mode, where, concurrency });
  });
  const startedAt = performance.now();
  const over = new AbortController();
  const killed = { runners: 0, servers: 0 };
  const killers = kills ? kill(options, fleet, killed, over.signal) : Promise.resolve();
  try {
    const isDone = async (): Promise<boolean> => (await countOpenCalls(databaseUrl)) === 0;
    await mustHold(`${mode}: no call is left`, longestMs, isDone, pollMs);
  } finally {
    over.abort();
    await killers;
  }
  const ms = performance.now() - startedAt;
  return {
    mode,
    calls,
    ...compare(fleet, calls),
    audit: await readAudit(databaseUrl),
    died: gateways.flatMap((gateway) => gateway.faults),
    killedRunners: killed.runners,
    killedServers: killed.servers,
    ms,
  };
}

/** Kills a runner every second or so, and a server of the broker, one of which is unreachable at a time; each is started again. */
async function kill(
  { seed, nats }: FleetOptions,
  fleet: readonly RunnerSlot[],
  killed: { runners: number; servers: number },
  over: AbortSignal,
): Promise<void> {
  const random = createRandom(seed);
  const killRunners = async (): Promise<void> => {
    while (!over.aborted) {
      await pause(random.between(500, 3_000), over);
      if (over.aborted) return;
      await random.pick(fleet).kill();
      killed.runners += 1;
    }
  };
  const killServers = async (): Promise<void> => {
    if (!nats) return;
    while (!over.aborted) {
      await pause(random.between(5_000, 10_000), over);
      if (over.aborted) return;
      const server = random.pick(nats.servers);
      await server.kill();
      killed.servers += 1;
      await pause(random.between(500, 3_000), over);
      await server.start();
    }
  };
  await Promise.all([killRunners(), killServers()]);
}

function compare(fleet: readonly RunnerSlot[], calls: number) {
  const all = fleet.flatMap(({ runs }, slot) =>
    runs.map((run): Run => ({ ...run, by: `${slot}/${run.process}` })),
  );
  const lists = [...Map.groupBy(all, ({ callId }) => callId).values()];
  const keys = lists.map((list) => new Set(list.map(({ idempotencyKey }) => idempotencyKey)));
  const different = new Set(lists.flatMap(([first]) => (first ? [first.idempotencyKey] : [])));
  const shared = lists.filter((list) =>
    list.some((run) => list.some((other) => other.attempt === run.attempt && other.by !== run.by)),
  );
  return {
    runs: all.length,
    duplicates: all.length - lists.length,
    lost: calls - lists.length,
    wrongKeys: keys.filter(({ size }) => size !== 1).length + (lists.length - different.size),
    sharedAttempts: shared.length,
  };
}

function must(count: number, what: string): string[] {
  return count === 0 ? [] : [`${count} ${what}`];
}

/** What must not be: nothing if the fleet worked. */
export function faultsOf({
  calls,
  duplicates,
  kills,
  ...report
}: FleetReport & { readonly kills: boolean }): string[] {
  const { audit } = report;
  const share = duplicates / calls;
  return [
    ...report.died,
    ...must(report.lost, 'calls were run by nobody'),
    ...must(calls - audit.completed, 'calls were not completed'),
    ...must(audit.notCompletedOnce, 'calls were not completed exactly once in the ledger'),
    ...must(report.wrongKeys, 'calls did not have one idempotency key of their own'),
    ...must(report.sharedAttempts, 'attempts ran in two processes'),
    ...must(audit.replacedWhileLive, 'leases were replaced while they were valid'),
    ...must(audit.takenTwice, 'attempts were taken from the broker twice'),
    ...(!kills && share >= 0.01 ? [`${duplicates} duplicates without faults, 1 % or more`] : []),
  ];
}

export function describe(report: FleetReport): string {
  const { mode, calls, runs, duplicates, killedRunners, killedServers, ms } = report;
  const perSecond = Math.round(calls / (ms / 1_000));
  const percent = ((duplicates / calls) * 100).toFixed(2);
  return (
    `${mode}: ${calls} calls in ${seconds(ms)}, ${perSecond}/s; ${runs} runs, ${duplicates} duplicates (${percent} %); ` +
    `${killedRunners} runners and ${killedServers} servers killed`
  );
}

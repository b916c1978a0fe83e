import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRandom } from '../chaos/random.ts';
import { type GuardedChild, startGuardedChild } from '../chaos/guarded-child.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import type { NatsCluster } from '../support/nats.ts';
import { type Audit, beginAudit, countOpenCalls, readAudit } from './audit.ts';
import { fleetConfig, type FleetMode, makeCalls, startFleetGateways } from './gateways.ts';

export interface FleetOptions {
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
  readonly killedRunners: number;
  readonly killedServers: number;
  /** From the first call in the outbox that could be taken to the last one completed. */
  readonly ms: number;
}

const gatewayCount = 2;
const longestMs = 900_000;
const program = path.join(import.meta.dirname, 'runner-process.ts');

interface Run {
  readonly attempt: number;
  readonly key: string;
  readonly process: number;
}

/** Lets a fleet of runners do the calls, and compares what they wrote with what the database saw. */
export async function runFleet(options: FleetOptions): Promise<FleetReport> {
  const { mode, databaseUrl, nats, calls, runners: runnerCount, say } = options;
  const config = await fleetConfig(mode, nats?.urls ?? []);
  await beginAudit(databaseUrl);
  say(`${mode}: recording ${calls} calls`);
  await makeCalls(databaseUrl, config, { from: 0, count: calls });
  const gateways = await startFleetGateways(gatewayCount, config, databaseUrl);
  const urls = mode === 'jetstream' ? (nats?.urls ?? []) : gateways.map(({ url }) => url);
  const runs = new Map<number, Run[]>();
  let processes = 0;
  const start = async (): Promise<GuardedChild> => {
    const number = ++processes;
    const args = [program, mode, urls.join(','), String(options.concurrency)];
    const child = await startGuardedChild({ args, cwd: repositoryRoot });
    child.onLine((line) => {
      const [word, callId = '', attempt = '', key = ''] = line.split(' ');
      if (word !== 'run') return;
      const list = runs.get(Number(callId)) ?? [];
      list.push({ attempt: Number(attempt), key, process: number });
      runs.set(Number(callId), list);
    });
    return child;
  };
  const fleet = await Promise.all(Array.from({ length: runnerCount }, start));
  const startedAt = performance.now();
  const killing = new AbortController();
  const killed = { runners: 0, servers: 0 };
  const killers = options.kills ? kill(options, fleet, start, killed, killing.signal) : Promise.resolve();
  try {
    while ((await countOpenCalls(databaseUrl)) > 0) {
      if (performance.now() - startedAt > longestMs)
        throw new Error(`${mode}: calls are left after 15 minutes`);
      await sleep(200);
    }
    const ms = performance.now() - startedAt;
    killing.abort();
    await killers;
    const audit = await readAudit(databaseUrl);
    return {
      mode,
      calls,
      ...compare(runs, calls),
      audit,
      killedRunners: killed.runners,
      killedServers: killed.servers,
      ms,
    };
  } finally {
    killing.abort();
    await killers;
    for (const child of fleet) child.signal('SIGKILL');
    await Promise.all(fleet.map(({ ended }) => ended));
    await Promise.all(gateways.map((gateway) => gateway.stop()));
  }
}

/** Kills a runner every second or so, and a server of the broker, one of which is unreachable at a time; each is started again. */
async function kill(
  { seed, nats }: FleetOptions,
  fleet: GuardedChild[],
  start: () => Promise<GuardedChild>,
  killed: { runners: number; servers: number },
  over: AbortSignal,
): Promise<void> {
  const random = createRandom(seed);
  const wait = (ms: number): Promise<unknown> => sleep(ms, undefined, { signal: over }).catch(() => {});
  const killRunners = async (): Promise<void> => {
    while (!over.aborted) {
      await wait(random.between(500, 2_000));
      if (over.aborted) return;
      const at = random.between(0, fleet.length - 1);
      const victim = fleet[at];
      victim?.signal('SIGKILL');
      await victim?.ended;
      killed.runners += 1;
      await wait(random.between(0, 1_000));
      fleet[at] = await start();
    }
  };
  const killServers = async (): Promise<void> => {
    if (!nats) return;
    while (!over.aborted) {
      await wait(random.between(5_000, 10_000));
      if (over.aborted) return;
      const server = random.pick(nats.servers);
      await server.kill();
      killed.servers += 1;
      await wait(random.between(500, 3_000));
      await server.start();
    }
  };
  await Promise.all([killRunners(), killServers()]);
}

function compare(runs: ReadonlyMap<number, readonly Run[]>, calls: number) {
  const lists = [...runs.values()];
  const keys = lists.map((list) => new Set(list.map(({ key }) => key)));
  const different = new Set(lists.flatMap(([first]) => (first ? [first.key] : [])));
  const shared = lists.filter((list) =>
    list.some((run) => list.some((other) => other.attempt === run.attempt && other.process !== run.process)),
  );
  const all = lists.reduce((sum, list) => sum + list.length, 0);
  return {
    runs: all,
    duplicates: all - lists.length,
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
    `${mode}: ${calls} calls in ${(ms / 1_000).toFixed(1)} s, ${perSecond}/s; ${runs} runs, ${duplicates} duplicates (${percent} %); ` +
    `${killedRunners} runners and ${killedServers} servers killed`
  );
}

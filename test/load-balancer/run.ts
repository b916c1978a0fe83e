import { setTimeout as sleep } from 'node:timers/promises';
import { checkRun } from '../chaos/checks/check-run.ts';
import type { Violation } from '../chaos/checks/violation.ts';
import { drawPayees, type PaymentNetwork } from '../chaos/environment.ts';
import type { Random } from '../chaos/random.ts';
import { createRecords } from '../chaos/records.ts';
import { type Rig, seconds } from '../chaos/rig.ts';
import type { ServerCounts } from './balancer.ts';
import { buy, buyPoison, chat, type ClientParts, read, signUp } from './clients.ts';
import { answerOf, completionsOf, failuresOf } from './failures.ts';
import { type Absence, type Exchange, judge, type Outage, type PeerName } from './judge.ts';
import { endPoison, makeStale, openAccounts } from './operator.ts';
import { type Participants, startParticipants } from './participants.ts';

export interface PlannedOutage {
  readonly peer: PeerName;
  readonly how: Absence;
  readonly ms: number;
}

export interface LoadBalancerOptions {
  readonly rig: Rig;
  readonly network: PaymentNetwork;
  /** Of a migrated database, by its owner. */
  readonly databaseUrl: string;
  readonly random: Random;
  /** Each gateway is restarted at least this often, and again and again while peers are unreachable. */
  readonly restarts: number;
  readonly outages: readonly PlannedOutage[];
  readonly buyers: number;
  readonly chatters: number;
  readonly say: (line: string) => void;
  readonly keeps?: boolean;
}

export interface LoadBalancerReport {
  /** Numbers of honest requests by operation and answer. */
  readonly answers: ReadonlyMap<string, number>;
  /** Of requests that failed, and of refusals that came after the payment was started. */
  readonly failures: readonly string[];
  readonly violations: readonly Violation[];
  readonly restarts: number;
  readonly poisonPushes: number;
  readonly servers: readonly ServerCounts[];
  readonly payments: { readonly signed: number; readonly landed: number; readonly accepted: number };
  readonly ms: number;
}

/** For the answers to the last requests. */
const answersMs = 60_000;
const betweenOutagesMs = 500;

/** Honest clients use two gateways through the balancer while gateways restart and peers are unreachable. */
export async function runLoadBalancer(options: LoadBalancerOptions): Promise<LoadBalancerReport> {
  const startedAt = performance.now();
  const { rig, random, network, databaseUrl } = options;
  const outages: Outage[] = [];
  const records = createRecords();
  const exchanges: Exchange[] = [];
  const { payTo, recipient, fromBlock } = await drawPayees(network, random);
  const known = { rig, databaseUrl, network, payTo, recipient, records, exchanges };
  const participants = await startParticipants(known);
  const { gateways, runners, balancer } = participants;
  rig.log('processes.log', () => [...gateways, ...runners].map(({ log }) => log()).join('\n'));
  rig.log('exchanges.jsonl', () => exchanges.map((one) => JSON.stringify(one)).join('\n'));
  if (options.keeps) options.say(`logs: ${rig.keepLogs()}`);
  const accounts = await openAccounts(databaseUrl, options.chatters, records);
  options.say(`two gateways behind a balancer after ${seconds(performance.now() - startedAt)}`);

  const [stopping, deadline, over] = [new AbortController(), new AbortController(), new AbortController()];
  rig.defer(() => deadline.abort());
  const parts: ClientParts = {
    url: balancer.url,
    network,
    records,
    exchanges,
    accounts,
    stopping: stopping.signal,
    deadline: deadline.signal,
  };
  const clients = startClients(parts, options);
  // a rejection is reported by the await below
  clients.catch(() => {});
  const [restarts] = await Promise.all([
    restartInTurn(participants, options, over.signal),
    beAwayInTurn(participants, outages, options).finally(() => over.abort()),
    makeStale(databaseUrl, over.signal),
  ]);
  stopping.abort();
  await Promise.race([clients, sleep(answersMs, undefined, { ref: false })]);
  const left = await endPoison(participants, databaseUrl);
  deadline.abort();
  await clients;
  const servers = await balancer.count();
  // the check below kills the gateways
  const all = [...exchanges, ...completionsOf(records)];
  const cut = gateways.flatMap(({ name, log }) =>
    log().includes('requests were cut') ? [`gateway ${name} cut requests when it stopped`] : [],
  );

  // the balancer hides it, and could not where a request had been sent
  const repeated = servers.flatMap(({ name, errors, retries }) =>
    errors + retries > 0 ? [`${name} closed while it was in service: ${errors + retries} times`] : [],
  );
  const found = await checkRun({
    network,
    url: databaseUrl,
    participants,
    records,
    payTo,
    recipient,
    fromBlock,
    left,
    mustSell: [],
  });
  const answers = Map.groupBy(all, (one) => `${one.operation} ${judge(one, outages)}: ${answerOf(one)}`);
  return {
    answers: new Map([...answers].map(([name, some]) => [name, some.length])),
    failures: [...failuresOf(all, outages, found.ledger), ...cut, ...repeated],
    violations: found.violations,
    restarts,
    poisonPushes: participants.poison.pushes(),
    servers,
    payments: {
      signed: records.signed.size,
      landed: found.landed,
      accepted: records.presentations.filter(({ end }) => end === 'accepted').length,
    },
    ms: performance.now() - startedAt,
  };
}

async function startClients(
  parts: ClientParts,
  { buyers, chatters, random }: LoadBalancerOptions,
): Promise<void> {
  await Promise.all([
    ...names('buyer', buyers).map((name) => buy(parts, name, random.fork(name))),
    buyPoison(parts, 'poison buyer', random.fork('poison buyer')),
    ...names('chatter', chatters).flatMap((name, index) => {
      const account = parts.accounts[index];
      return account ? [chat(parts, name, random.fork(name), account)] : [];
    }),
    read(parts, random.fork('reader'), { from: 50, to: 300 }),
    read(parts, random.fork('slow reader'), { from: 3_000, to: 12_000 }),
    read(parts, random.fork('idle reader'), { from: 70_000, to: 80_000 }),
    signUp(parts, 'person', random.fork('person')),
  ]);
}

function names(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind} ${index + 1}`);
}

async function restartInTurn(
  { gateways, balancer }: Participants,
  { restarts, say }: LoadBalancerOptions,
  over: AbortSignal,
): Promise<number> {
  let count = 0;
  while (count < restarts * gateways.length || !over.aborted) {
    const index = count % gateways.length;
    const startedAt = performance.now();
    await gateways[index]?.restart();
    // as an operator has to: the next gateway only once this one gets requests again
    await balancer.untilUp(index + 1);
    count++;
    say(`gateway ${index + 1} restarted in ${seconds(performance.now() - startedAt)}`);
  }
  return count;
}

async function beAwayInTurn(
  { setAway }: Participants,
  outages: Outage[],
  { outages: planned, say }: LoadBalancerOptions,
): Promise<void> {
  for (const { peer, how, ms } of planned) {
    await sleep(betweenOutagesMs);
    say(`${peer} away for ${seconds(ms)} (${how})`);
    const outage: Outage = { peer, how, from: Date.now(), to: Infinity };
    outages.push(outage);
    setAway(peer, how);
    await sleep(ms);
    setAway(peer, undefined);
    outage.to = Date.now();
  }
  await sleep(betweenOutagesMs);
}

import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import type { PaymentNetwork } from '../chaos/environment.ts';
import { siegeConfig } from '../chaos/gateway-config.ts';
import { type GatewaySlot, startGatewaySlot } from '../chaos/gateway-process.ts';
import { type Behaviour, type Peer, startPeer, well } from '../chaos/peer.ts';
import { countAsked, type Records } from '../chaos/records.ts';
import type { Rig } from '../chaos/rig.ts';
import { type RunnerSlot, startRunnerSlot } from '../chaos/runner-slot.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import type { Absence, Exchange, PeerName } from './judge.ts';

export interface Participants {
  readonly balancer: Balancer;
  readonly gateways: readonly GatewaySlot[];
  readonly runners: readonly RunnerSlot[];
  readonly poison: Poison;
  /** Undefined: the peer is there. */
  setAway(peer: PeerName, how: Absence | undefined): void;
}

/** A service whose runner is of no use. */
export interface Poison {
  /** The number of pushes it got. */
  readonly pushes: () => number;
  /** From now on each call is refused for good, so that all of them end. */
  relent(): void;
}

export interface ParticipantsOptions {
  readonly rig: Rig;
  readonly databaseUrl: string;
  readonly network: PaymentNetwork;
  readonly payTo: Address;
  readonly recipient: Address;
  readonly records: Records;
  readonly exchanges: Exchange[];
}

/** Longer than two checks of the balancer, also if a busy machine answers each of them late. */
const drainDelaySecs = 4;

/** A push runner that refuses, and a service that no runner serves. */
export const poisoned = { pushed: 3, leased: 4 } as const;
export const poisonRunner = 'poison';

const poisonTables = (url: string, tokenFile: string): string => `
[[runners]]
name = "${poisonRunner}"
services = [${poisoned.pushed}]
mode = "push"
url = "${url}/calls"
token = "env:CHAOS_RUNNER_TOKEN"

[[runners]]
services = [${poisoned.leased}]
mode = "lease"
token = "file:${tokenFile}"

[job_prices.${poisoned.pushed}]
0 = "1000000000000000"

[job_prices.${poisoned.leased}]
0 = "1000000000000000"
`;

/** Pushed calls get these answers in turn, and the last one is none. */
const poisonAnswers = [410, 500, 'silent', 410, 503, 'silent'] as const;
const behaviours = { cut: 'away', silent: 'silent', error: 502 } as const satisfies Record<
  Absence,
  Behaviour
>;

/** Two gateways behind a balancer, with a proxy in front of each peer, and the runners. */
export async function startParticipants(options: ParticipantsOptions): Promise<Participants> {
  const { rig, databaseUrl, network, payTo, recipient } = options;
  const pushPort = await freePort();
  const facilitator = await startPeer(rig, network.facilitatorUrl);
  const chain = await startPeer(rig, network.chain.url);
  const push = await startPeer(rig, `http://127.0.0.1:${pushPort}`);
  const model = await startModel(options);
  const poison = await startPeer(rig, () => undefined);
  let pushes = 0;
  poison.behave = () => poisonAnswers[pushes++ % poisonAnswers.length] ?? 'silent';
  const tokenFile = path.join(rig.dir, 'absent-runner.token');
  writeFileSync(tokenFile, 'a-token-of-a-runner-that-never-comes', { mode: 0o600 });
  const mailDir = path.join(rig.dir, 'mail');
  mkdirSync(mailDir);
  const config = {
    facilitatorUrl: facilitator.url,
    rpcUrl: chain.url,
    pushUrl: push.url,
    network,
    payTo,
    variant: { ...siegeConfig, requestsPerMinute: 0 },
    chat: { upstreamUrl: model.url, recipient, mailDir, patience: 5 },
    drainDelaySecs,
    tables: poisonTables(poison.url, tokenFile),
  };
  const gateways = await Promise.all(
    ['1', '2'].map((name) => startGatewaySlot(rig, { name, dir: rig.dir, config, databaseUrl })),
  );
  await Promise.all(gateways.map((gateway) => gateway.untilUp()));
  const balancer = await startBalancer(
    rig,
    gateways.map(({ url }) => url),
  );
  const lease = await startLeases(options, balancer.url);
  const runners = [
    startRunnerSlot(rig, { mode: 'push', where: String(pushPort) }),
    startRunnerSlot(rig, { mode: 'lease', where: lease.url }),
  ];
  await Promise.all(gateways.map((_, index) => balancer.untilUp(index + 1)));
  const proxies = { facilitator, chain, 'push runner': push, 'lease runner': lease, model };
  return {
    balancer,
    gateways,
    runners,
    poison: { pushes: () => pushes, relent: () => void (poison.behave = () => 422) },
    setAway(peer, how) {
      if (peer !== 'mail') proxies[peer].behave = how ? () => behaviours[how] : well;
      else {
        // mails go to a folder: it is away where a file is in its place
        rmSync(mailDir, { recursive: true, force: true });
        if (how) writeFileSync(mailDir, '');
        else mkdirSync(mailDir);
      }
    },
  };
}

/** Between two pieces of an answer: a completion takes two seconds. */
const pauseMs = 300;

function startModel({ rig, network, records }: ParticipantsOptions): Promise<Peer> {
  return startPeer(rig, network.modelUrl, async ({ body }, forward) => {
    const seen = countAsked(records, body);
    const reply = await forward();
    if (reply === 'cut' || reply.status !== 200) return reply;
    seen.begun += 1;
    return { ...reply, pieces: { pauseMs, midway: async () => true } };
  });
}

/** Between the lease runner and the balancer: its requests are those of an honest client. */
function startLeases({ rig, exchanges }: ParticipantsOptions, balancerUrl: string): Promise<Peer> {
  return startPeer(rig, balancerUrl, async ({ path: where }, forward) => {
    const operation = where === '/runner/leases' ? ('lease' as const) : ('report' as const);
    const exchange = { operation, path: where, sentAt: Date.now() };
    try {
      const answer = await forward();
      if (answer !== 'cut') exchanges.push({ ...exchange, endedAt: Date.now(), status: answer.status });
      return answer;
    } catch (error) {
      const code = error instanceof Error ? error.message : String(error);
      exchanges.push({ ...exchange, endedAt: Date.now(), status: undefined, code });
      return 'cut';
    }
  });
}

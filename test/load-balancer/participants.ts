import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { freePort } from '../../src/devnet/ports.ts';
import type { Address } from '../../src/base/values/primitives.ts';
import type { PaymentNetwork } from '../chaos/environment.ts';
import { repositoryRoot } from '../support/planted-copy.ts';
import { gatewayConfig, siegeConfig } from '../chaos/gateway-config.ts';
import { createGatewaySlot, type GatewaySlot, runnerToken } from '../chaos/gateway-process.ts';
import { type HttpProxy, startHttpProxy } from '../chaos/http-proxy.ts';
import { promptIn, type Records } from '../chaos/records.ts';
import { createRunnerSlot, type RunnerSlot } from '../chaos/runner-slot.ts';
import { type Balancer, startBalancer } from './balancer.ts';
import type { Exchange } from './judge.ts';
import type { Outages } from './outages.ts';
import { type Poison, startPoison } from './poison.ts';

export interface Participants {
  readonly balancer: Balancer;
  readonly gateways: readonly GatewaySlot[];
  readonly runners: readonly RunnerSlot[];
  readonly poison: Poison;
}

export interface ParticipantsOptions {
  readonly dir: string;
  readonly databaseUrl: string;
  readonly network: PaymentNetwork;
  readonly payTo: Address;
  readonly recipient: Address;
  readonly outages: Outages;
  readonly records: Records;
  readonly exchanges: Exchange[];
  /** Gets what ends each part, as soon as it has started. */
  readonly closing: (() => Promise<unknown>)[];
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

/** Two gateways behind a balancer, with a proxy in front of each peer, and the runners. */
export async function startParticipants(options: ParticipantsOptions): Promise<Participants> {
  const { dir, databaseUrl, network, outages, closing } = options;
  const kept = <T extends { close(): Promise<unknown> }>(started: T): T => {
    closing.push(() => started.close());
    return started;
  };
  const pushPort = await freePort();
  const facilitator = kept(await startPeer(outages, 'facilitator', network.facilitatorUrl));
  const chain = kept(await startPeer(outages, 'chain', network.chain.url));
  const push = kept(await startPeer(outages, 'push runner', `http://127.0.0.1:${pushPort}`));
  const model = kept(await startModel(options));
  const poison = kept(await startPoison());
  const ports = [await freePort(), await freePort()];
  const tokenFile = path.join(dir, 'absent-runner.token');
  writeFileSync(tokenFile, 'a-token-of-a-runner-that-never-comes', { mode: 0o600 });
  const gateways = ports.map((port, index) => {
    const configFile = path.join(dir, `gateway-${index + 1}.toml`);
    const urls = { facilitatorUrl: facilitator.url, rpcUrl: chain.url, pushUrl: push.url };
    const [token, secondToken] = network.tokens;
    const chat = {
      upstreamUrl: model.url,
      recipient: options.recipient,
      mailDir: mailDirIn(dir),
      patience: 5,
    };
    const { registry } = network;
    const variant = { ...siegeConfig, requestsPerMinute: 0 };
    const values = { port, ...urls, token, secondToken, registry, payTo: options.payTo, variant, chat };
    writeFileSync(
      configFile,
      gatewayConfig({ ...values, drainDelaySecs }) + poisonTables(poison.url, tokenFile),
    );
    return createGatewaySlot({
      name: String(index + 1),
      url: `http://127.0.0.1:${port}`,
      root: repositoryRoot,
      configFile,
      databaseUrl,
      // no gateway may end by itself
      isExcused: () => false,
    });
  });
  closing.push(() => Promise.all(gateways.map((gateway) => gateway.stop())));
  await Promise.all(gateways.map((gateway) => gateway.untilUp()));
  const balancer = await startBalancer(
    dir,
    gateways.map(({ url }) => url),
  );
  closing.push(() => balancer.stop());
  const lease = kept(await startLeases(options, balancer.url));
  const runners = [
    createRunnerSlot(['push', String(pushPort), runnerToken]),
    createRunnerSlot(['lease', lease.url, runnerToken]),
  ];
  closing.push(() => Promise.all(runners.map((runner) => runner.stop())));
  await Promise.all(gateways.map((_, index) => balancer.untilUp(index + 1)));
  return { balancer, gateways, runners, poison };
}

function startPeer(
  outages: Outages,
  peer: Parameters<Outages['through']>[0],
  target: string,
): Promise<HttpProxy> {
  return startHttpProxy(
    () => target,
    (_, forward) => outages.through(peer, forward),
  );
}

/** Between two pieces of an answer: a completion takes two seconds. */
const pauseMs = 300;

function startModel({ network, outages, records }: ParticipantsOptions): Promise<HttpProxy> {
  return startHttpProxy(
    () => network.modelUrl,
    async ({ body }, forward) => {
      const prompt = promptIn(body.toString('utf8'));
      const seen = records.upstream.get(prompt) ?? { asked: 0, begun: 0 };
      records.upstream.set(prompt, seen);
      seen.asked += 1;
      const reply = await outages.through('model', forward);
      if (reply === 'cut' || reply.status !== 200) return reply;
      seen.begun += 1;
      return { ...reply, pieces: { pauseMs, midway: async () => true } };
    },
  );
}

/** Between the lease runner and the balancer: its requests are those of an honest client. */
function startLeases({ outages, exchanges }: ParticipantsOptions, balancerUrl: string): Promise<HttpProxy> {
  return startHttpProxy(
    () => balancerUrl,
    async ({ path: where }, forward) => {
      if (outages.isAway('lease runner')) return 'cut';
      const operation = where === '/runner/leases' ? ('lease' as const) : ('report' as const);
      const exchange = { operation, path: where, sentAt: Date.now() };
      try {
        const answer = await forward();
        exchanges.push({ ...exchange, endedAt: Date.now(), status: answer.status });
        return answer;
      } catch (error) {
        const code = error instanceof Error ? error.message : String(error);
        exchanges.push({ ...exchange, endedAt: Date.now(), status: undefined, code });
        return 'cut';
      }
    },
  );
}

function mailDirIn(dir: string): string {
  return path.join(dir, 'mail');
}

/** Mails go to a folder: it is unreachable if a file is in its place. */
export function setMailAway(dir: string, isAway: boolean): void {
  const folder = mailDirIn(dir);
  rmSync(folder, { recursive: true, force: true });
  if (isAway) writeFileSync(folder, '');
  else mkdirSync(folder);
}

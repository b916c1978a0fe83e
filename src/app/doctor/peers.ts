import type { Config } from '../../base/config/config.ts';
import { isOwnUpstream } from '../../base/config/urls.ts';
import { type Reach, reach } from '../../base/peers/http/reach.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';

const timeoutMs = 4_000;
const dayMs = 86_400_000;
/** As docs/operations/tls.md advises. */
const noticedDays = 14;

/** A peer that the gateway sends requests to, and the key that names it. */
interface Peer {
  readonly what: string;
  readonly key: string;
  readonly url: string;
}

/** Push runners, upstreams and receivers of alerts: whether a connection can be made. Nothing is sent. */
export async function checkPeers(config: Config): Promise<readonly CheckResult[]> {
  const peers = [...runnersOf(config), ...upstreamsOf(config), ...receiversOf(config)];
  return Promise.all(peers.map(checkPeer));
}

async function checkPeer({ what, key, url }: Peer): Promise<CheckResult> {
  const { origin } = new URL(url);
  const reached = await reach(url, timeoutMs);
  if (reached.kind === 'reached')
    return certificate(what, origin, reached) ?? ok(what, `${origin} is reachable`);
  return fail(what, describeReach(origin, reached), repairOf(reached, key));
}

/** A warning where a certificate ends soon. */
export function certificate(
  what: string,
  origin: string,
  { certificateEnds }: Extract<Reach, { kind: 'reached' }>,
): CheckResult | undefined {
  if (!certificateEnds) return undefined;
  const days = Math.floor((certificateEnds.getTime() - Date.now()) / dayMs);
  if (days > noticedDays) return undefined;
  const found = `the certificate of ${origin} ends in ${days} days`;
  return warn(what, found, 'Renew it (docs/operations/tls.md#before-a-certificate-expires).');
}

export function describeReach(origin: string, reached: Exclude<Reach, { kind: 'reached' }>): string {
  return reached.kind === 'insecure'
    ? `the certificate or TLS of ${origin} is not accepted (${reached.code})`
    : `${origin} cannot be reached (${reached.code})`;
}

function repairOf({ kind, code }: Exclude<Reach, { kind: 'reached' }>, key: string): string {
  if (kind === 'insecure')
    return `Give it a certificate of a known authority for the host in ${key}, or name your authority in NODE_EXTRA_CA_CERTS (docs/operations/tls.md#to-peers).`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `Correct the host in ${key}, or the name service of this machine.`;
  return `Start it, let this machine reach it, or correct ${key}.`;
}

function runnersOf({ runners }: Config): Peer[] {
  return runners.flatMap(({ name, url }, index) =>
    url === undefined ? [] : { what: `runner ${name}`, key: `runners[${index}].url`, url },
  );
}

/** Of routes that are not this gateway, in the order of the file, and of models; each host once. */
function upstreamsOf({ jobs, chat }: Config): Peer[] {
  const routes = [...(jobs?.routes?.all.values() ?? [])].flatMap(({ upstream, priceUrl }, index) => [
    { key: `routes[${index}].upstream`, url: upstream },
    ...(priceUrl === undefined ? [] : [{ key: `routes[${index}].price_url`, url: priceUrl }]),
  ]);
  const free = [...(jobs?.routes?.free ?? [])].map(([path, url]) => ({
    key: `route_listener.free."${path}"`,
    url,
  }));
  const models = (chat?.upstreams ?? []).map(({ baseUrl }, index) => ({
    key: `upstreams[${index}].base_url`,
    url: baseUrl,
  }));
  const all = [...routes, ...free, ...models].filter(({ url }) => !isOwnUpstream(url));
  const distinct = new Map(all.toReversed().map((peer) => [new URL(peer.url).origin, peer]));
  return [...distinct.values()].toReversed().map((peer) => ({ what: 'upstream', ...peer }));
}

function receiversOf({ alerts: { webhook, slackUrl, pagerdutyKey, pagerdutyUrl } }: Config): Peer[] {
  const what = 'alert receiver';
  return [
    ...(webhook === undefined ? [] : [{ what, key: 'alerts.webhook', url: webhook }]),
    ...(slackUrl === undefined ? [] : [{ what, key: 'alerts.slack_url', url: slackUrl }]),
    ...(pagerdutyKey === undefined ? [] : [{ what, key: 'alerts.pagerduty_url', url: pagerdutyUrl }]),
  ];
}

/** Whether someone learns of faults, and of a loss of events. */
export function checkReports({ alerts, log }: Config): readonly CheckResult[] {
  const { webhook, slackUrl, pagerdutyKey } = alerts;
  const hasReceiver = [webhook, slackUrl, pagerdutyKey].some((receiver) => receiver !== undefined);
  const receivers = hasReceiver
    ? []
    : [
        warn(
          'alerts',
          'no receiver gets alerts of faults',
          'Name a receiver in [alerts] (docs/operations.md#alerts).',
        ),
      ];
  const anchors = log?.anchors ?? [];
  const anchored =
    anchors.length > 0
      ? ok('anchors', `checkpoints go to ${anchors.map(({ name }) => name).join(', ')}`)
      : warn(
          'anchors',
          'after a restart nothing would show that the database lost events',
          'Set [log] with [[log.anchors]] (docs/log.md#sealing).',
        );
  return [...receivers, anchored];
}

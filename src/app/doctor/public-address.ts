import { z } from 'zod';
import type { Config } from '../../base/config/config.ts';
import { createHttpPool, type HttpAnswer, type HttpPool } from '../../base/peers/http/http.ts';
import { reach } from '../../base/peers/http/reach.ts';
import { jsonValue } from '../../base/values/bounded-json.ts';
import { type CheckResult, fail, ok, warn } from './check-result.ts';
import { certificate, describeReach } from './peers.ts';

const timeoutMs = 4_000;
const maxResponseBytes = 64 * 1024;
/** A payment is a header of this many bytes at most. */
const paymentHeaderBytes = 16 * 1024;

/** What `/status` says to anyone. */
const statusSchema = z.object({
  status: z.enum(['ok', 'degraded', 'critical']),
  ledger: z.object({}),
});

/** The addresses that clients use: certificate, proxy, and whether a gateway answers there. */
export async function checkPublicAddresses(config: Config): Promise<readonly CheckResult[]> {
  const routesUrl = config.jobs?.routes?.publicUrl;
  const [gateway, routes] = await Promise.all([
    checkGateway(config),
    routesUrl === undefined ? undefined : checkCertificate('route_listener.public_url', routesUrl),
  ]);
  return [...gateway, ...(routes?.results ?? []), ...checkProxies(config)];
}

async function checkGateway({ publicUrl, bindAddress }: Config): Promise<readonly CheckResult[]> {
  // unknown before the gateway listens
  if (bindAddress.port === 0 && new URL(publicUrl).port === '0') return [];
  const { isUsable, results } = await checkCertificate('public_url', publicUrl);
  if (!isUsable) return results;
  const pool = createHttpPool(publicUrl, { connections: 1 });
  try {
    return [...results, ...(await checkAnswers(pool, publicUrl))];
  } finally {
    await pool.abort();
  }
}

async function checkAnswers(pool: HttpPool, publicUrl: string): Promise<readonly CheckResult[]> {
  const what = 'public_url';
  const path = `${new URL(publicUrl).pathname.replace(/\/$/, '')}/status`;
  const ask = (headers: Readonly<Record<string, string>>): Promise<HttpAnswer> =>
    pool.request({ method: 'GET', path, headers, timeoutMs, maxResponseBytes });
  const answer = await ask({});
  const status = gatewayStatus(answer);
  if (status === undefined)
    return [
      warn(
        what,
        `no gateway answers at ${publicUrl}/status (${wordsOf(answer)})`,
        'Start the gateway, and let the proxy pass every path on to its bind_address (docs/operations/tls.md#for-clients).',
      ),
    ];
  const reached = ok(what, `a gateway answers at ${publicUrl}, its status is ${status}`);
  const paid = await ask({ 'payment-signature': 'A'.repeat(paymentHeaderBytes) });
  if (gatewayStatus(paid) !== undefined) return [reached];
  return [
    reached,
    fail(
      what,
      `a request with a payment header of ${paymentHeaderBytes / 1_024} KiB does not reach the gateway (${wordsOf(paid)})`,
      'Let the proxy take such headers: for nginx large_client_header_buffers 4 32k (docs/operations/tls.md#for-clients).',
    ),
  ];
}

function gatewayStatus(answer: HttpAnswer): string | undefined {
  if (answer.kind === 'failed') return undefined;
  return statusSchema.safeParse(jsonValue(answer.body)).data?.status;
}

function wordsOf(answer: HttpAnswer): string {
  return answer.kind === 'failed' ? answer.cause : `HTTP ${answer.status}`;
}

interface Encryption {
  /** Requests can be sent there. */
  readonly isUsable: boolean;
  readonly results: readonly CheckResult[];
}

/** Says nothing of plain http, which the configuration warns of. */
async function checkCertificate(what: string, url: string): Promise<Encryption> {
  const { protocol, origin, hostname } = new URL(url);
  if (protocol !== 'https:') return { isUsable: true, results: [] };
  const reached = await reach(url, timeoutMs);
  if (reached.kind === 'reached')
    return {
      isUsable: true,
      results: [certificate(what, origin, reached) ?? ok(what, `the certificate of ${hostname} is valid`)],
    };
  const found = describeReach(origin, reached);
  const result =
    reached.kind === 'insecure'
      ? fail(
          what,
          found,
          `Give the proxy a valid certificate for ${hostname}, with those between it and its authority (docs/operations/tls.md#for-clients).`,
        )
      : // a network may keep its machines from its own public address
        warn(
          what,
          found,
          `Let ${hostname} lead to the proxy, and start it (docs/operations/tls.md#for-clients).`,
        );
  return { isUsable: false, results: [result] };
}

/** A gateway speaks plain http: where clients use https, a proxy is between. */
function checkProxies({ publicUrl, trustProxy }: Config): readonly CheckResult[] {
  if (!publicUrl.startsWith('https:')) return [];
  if (trustProxy.length > 0) return [ok('trust_proxy', trustProxy.join(', '))];
  return [
    warn(
      'trust_proxy',
      'is empty, so all clients have the address of the proxy and share its limits',
      'Name the proxy in trust_proxy, and let it set X-Forwarded-For (docs/operations/tls.md#for-clients).',
    ),
  ];
}

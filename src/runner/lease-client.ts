/** The gateway's answers, sorted by the possible reaction. */
export type LeaseAnswer =
  | { readonly kind: 'ok'; readonly value: unknown; readonly serverTimeMs: number | undefined }
  /** 409: the call belongs to another attempt. */
  | { readonly kind: 'lost' }
  /** The gateway may or may not have done it: send the request again. */
  | { readonly kind: 'again'; readonly reason: string; readonly afterMs: number }
  /** Asking again would be answered the same. */
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string };

export interface LeaseClient {
  /** Never rejects. */
  post(path: string, body: unknown, options: PostOptions): Promise<LeaseAnswer>;
  /** The same with bytes, for the holder of a lease. */
  postBytes(path: string, bytes: Buffer, leaseId: string, options: PostOptions): Promise<LeaseAnswer>;
}

export interface PostOptions {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The span that the request belongs to. */
  readonly traceparent?: string | undefined;
}

/** Nothing the gateway has to say about an error is longer. */
const reasonLength = 300;
const maxRetryAfterMs = 60_000;
/** All else may pass, as a proxy's 404 while a gateway is being replaced. */
const finalStatuses: ReadonlySet<number> = new Set([400, 401, 403, 413, 422]);

/** @throws TypeError for a URL or a token that cannot be one */
export function createLeaseClient(gatewayUrl: string, token: string): LeaseClient {
  const { protocol, href } = new URL(gatewayUrl);
  if (protocol !== 'http:' && protocol !== 'https:') throw new TypeError('gatewayUrl is not an http(s) URL');
  if (!/^[!-~]+$/.test(token))
    throw new TypeError('the token is empty or has characters that no header may have');
  const base = href.replace(/\/+$/, '');
  const send = async (
    path: string,
    body: Uint8Array<ArrayBuffer> | string,
    headers: Readonly<Record<string, string>>,
    { timeoutMs, signal, traceparent }: PostOptions,
  ): Promise<LeaseAnswer> => {
    const trace = traceparent === undefined ? {} : { traceparent };
    try {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, ...headers, ...trace },
        body,
        // the token goes nowhere else
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      return await sort(response);
    } catch (error) {
      return { kind: 'again', reason: causeOf(error), afterMs: 0 };
    }
  };
  return {
    post: (path, body, options) =>
      send(path, JSON.stringify(body), { 'content-type': 'application/json' }, options),
    postBytes(path, bytes, leaseId, options) {
      const headers = { 'content-type': 'application/octet-stream', 'x-net-lease-id': leaseId };
      return send(path, new Uint8Array(bytes), headers, options);
    },
  };
}

async function sort(response: Response): Promise<LeaseAnswer> {
  const { status, headers } = response;
  if (response.ok) {
    const at = Date.parse(headers.get('date') ?? '');
    return { kind: 'ok', value: await response.json(), serverTimeMs: Number.isNaN(at) ? undefined : at };
  }
  const reason = `${status} ${(await response.text()).slice(0, reasonLength)}`.trim();
  if (status === 409) return { kind: 'lost' };
  if (finalStatuses.has(status)) return { kind: 'refused', status, reason };
  const afterSecs = Number(headers.get('retry-after') ?? 0) || 0;
  return { kind: 'again', reason, afterMs: Math.min(Math.max(afterSecs, 0) * 1_000, maxRetryAfterMs) };
}

/** fetch itself says only "fetch failed". */
function causeOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error
    ? `${message}: ${cause.message || (cause as NodeJS.ErrnoException).code}`
    : message;
}

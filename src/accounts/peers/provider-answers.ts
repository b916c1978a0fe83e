import { jsonValue } from '../../base/values/bounded-json.ts';
import { createHttpPool } from '../../base/peers/http/http.ts';

/** The longest answers are the keys of providers with many of them. */
const maxResponseBytes = 262_144;

/** A GET; with `form`, a POST of it. */
export interface ProviderQuestion {
  readonly headers?: Readonly<Record<string, string>>;
  readonly form?: URLSearchParams;
  /** One deadline over connection, headers and body. */
  readonly timeoutMs?: number;
}

/** The JSON of an identity provider's 200; no redirect is followed. Undefined for every other answer, also for one that exceeds a bound. */
export async function askProvider(
  url: string,
  { headers = {}, form, timeoutMs = 5_000 }: ProviderQuestion = {},
): Promise<unknown> {
  const { pathname, search } = new URL(url);
  const pool = createHttpPool(url, { connections: 1 });
  const answer = await pool.request({
    method: form ? 'POST' : 'GET',
    path: pathname + search,
    headers: {
      accept: 'application/json',
      ...headers,
      ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(form && { body: form.toString() }),
    timeoutMs,
    maxResponseBytes,
  });
  await pool.close();
  return answer.kind === 'response' && answer.status === 200 ? jsonValue(answer.body) : undefined;
}

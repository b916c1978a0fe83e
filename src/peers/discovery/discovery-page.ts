import { createHash } from 'node:crypto';
import { listingKey, type LookProblem } from '../../domain/discovery/listing.ts';
import { isObject } from '../../domain/values/json-object.ts';
import { type HttpAnswer, isSuccess, parseJson } from '../http/http.ts';
import { readRetryAfterMs } from '../http/retry-after.ts';

/** What is read of a listed resource. */
export interface ListedResource {
  readonly address: string;
  /** Undefined for what is not on the web, such as a tool. */
  readonly key: string | undefined;
  /** In lower case. */
  readonly payees: readonly string[];
}

export type PageAnswer =
  | {
      readonly kind: 'page';
      readonly resources: readonly ListedResource[];
      /** Of all its items, also of those that are no resources. */
      readonly count: number;
      /** How many the whole list has, where the page says it. */
      readonly total: number | undefined;
      /** The same for pages with the same resources. */
      readonly digest: string;
    }
  | { readonly kind: 'problem'; readonly problem: LookProblem; readonly retryAfterMs?: number };

const mostPayees = 64;
/** Four megabytes of brackets take seconds to parse, in which the gateway does nothing else; a page of real resources has a tenth of these. */
const mostValues = 100_000;

/** A page of a discovery service, of which nothing is trusted: what is no resource is left out. */
export function readPage(answer: HttpAnswer): PageAnswer {
  if (answer.kind === 'failed') return { kind: 'problem', problem: problemOf(answer.cause) };
  const { status, headers, body } = answer;
  if (!isSuccess(status)) {
    const retryAfterMs = readRetryAfterMs(headers['retry-after']);
    const waits = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { kind: 'problem', problem: `status_${status}`, ...waits };
  }
  if (valuesOf(body) > mostValues) return { kind: 'problem', problem: 'too_large' };
  const page = parseJson(body);
  // `resources`: of a list by payee
  const items: unknown = isObject(page) ? (page['items'] ?? page['resources']) : undefined;
  if (!isObject(page) || !Array.isArray(items)) return { kind: 'problem', problem: 'malformed' };
  const resources = items.flatMap((item: unknown) => resourceOf(item) ?? []);
  if (resources.length === 0 && items.length > 0) return { kind: 'problem', problem: 'malformed' };
  const { total } = isObject(page['pagination']) ? page['pagination'] : {};
  return {
    kind: 'page',
    resources,
    count: items.length,
    total: typeof total === 'number' && Number.isSafeInteger(total) && total >= 0 ? total : undefined,
    digest: createHash('sha256')
      .update(JSON.stringify(resources.map(({ address }) => address)))
      .digest('base64'),
  };
}

function problemOf(cause: Extract<HttpAnswer, { kind: 'failed' }>['cause']): LookProblem {
  return cause === 'timeout' || cause === 'too_large' || cause === 'malformed' ? cause : 'unreachable';
}

/** Services differ in where they name the address. */
function resourceOf(item: unknown): ListedResource | undefined {
  if (!isObject(item)) return undefined;
  const { resource, url, accepts } = item;
  const named = isObject(resource) ? resource['url'] : (resource ?? url);
  if (typeof named !== 'string') return undefined;
  const options: unknown[] = Array.isArray(accepts) ? accepts.slice(0, mostPayees) : [];
  const payees = options.flatMap((option) => {
    const payTo = isObject(option) ? option['payTo'] : undefined;
    return typeof payTo === 'string' ? [payTo.toLowerCase()] : [];
  });
  return { address: named, key: listingKey(named), payees };
}

/** How many values a JSON text may have: its brackets and commas, also those inside of texts. */
function valuesOf(body: Buffer): number {
  let count = 0;
  // an iterator takes ten times as long
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at];
    if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count += 1;
  }
  return count;
}

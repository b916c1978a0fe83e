import { createHash } from 'node:crypto';
import { listingKey, type LookProblem } from '../../../base/values/discovery/listing.ts';
import { isObject } from '../../../base/values/json-object.ts';
import { readJson } from '../../../base/values/bounded-json.ts';
import { type HttpAnswer, isSuccess } from '../../../base/peers/http/http.ts';
import { readRetryAfterMs } from '../../../base/peers/http/retry-after.ts';

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
/** Some twenty milliseconds of work; a page of real resources has a tenth of these. */
const pageBounds = { maxDepth: 128, maxMarks: 200_000 };

/** A page of a discovery service, of which nothing is trusted: what is no resource is left out. */
export function readPage(answer: HttpAnswer): PageAnswer {
  if (answer.kind === 'failed') return { kind: 'problem', problem: problemOf(answer.cause) };
  const { status, headers, body } = answer;
  if (!isSuccess(status)) {
    const retryAfterMs = readRetryAfterMs(headers['retry-after']);
    const waits = retryAfterMs === undefined ? {} : { retryAfterMs };
    return { kind: 'problem', problem: `status_${status}`, ...waits };
  }
  const reading = readJson(body, pageBounds);
  if (reading.kind === 'refused')
    return { kind: 'problem', problem: reading.problem === 'malformed' ? 'malformed' : 'too_large' };
  const page = reading.value;
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

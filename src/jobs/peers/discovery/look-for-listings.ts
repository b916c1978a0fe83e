import { type Look, type LookProblem, listingKey } from '../../../base/values/discovery/listing.ts';
import { createHttpPool, type HttpPool, type HttpAnswer, isSuccess } from '../../../base/peers/http/http.ts';
import { createHash } from 'node:crypto';
import { isObject } from '../../../base/values/json-object.ts';
import { readJson } from '../../../base/values/bounded-json.ts';
import { readRetryAfterMs } from '../../../base/peers/http/retry-after.ts';

export interface LookTerms {
  /** Of the service: `/discovery/resources` is appended. */
  readonly url: string;
  /** In lower case. */
  readonly payees: readonly string[];
  /** The keys of our listings that it looks for, and those of them that were listed before. */
  readonly wanted: ReadonlySet<string>;
  readonly known: ReadonlySet<string>;
  readonly maxPages: number;
  /** Of one page, and of the whole look. */
  readonly timeoutMs: number;
  readonly lookTimeoutMs: number;
}

export type LookAnswer =
  | { readonly look: Look; readonly retryAfterMs?: number }
  | { readonly look: 'stopped' };

/** What services round to tens still honour, and no service was found to refuse. */
const pageLimit = 100;
const maxPageBytes = 4 * 1024 * 1024;
/** Of more payees no list is asked for: the whole list has them. */
const mostPayees = 8;

/**
 * Reads a discovery service until all that is looked for was found, or the list ends. Sends no secret, follows no redirect, never
 * rejects. The whole list may have hundreds of pages; services that list by payee show in one page whether anything changed.
 */
export async function lookForListings(terms: LookTerms, signal: AbortSignal): Promise<LookAnswer> {
  const pool = createHttpPool(terms.url, { connections: 1 });
  const stop = (): void => void pool.abort();
  signal.addEventListener('abort', stop, { once: true });
  const search = createSearch(terms, pool);
  const end = (await search.listsByPayee()) ?? (await search.wholeList());
  signal.removeEventListener('abort', stop);
  await pool.close();
  if (signal.aborted) return { look: 'stopped' };
  const found = search.found();
  if (end.kind === 'conclusive') return { look: { ...found, kind: 'conclusive' } };
  const { problem, retryAfterMs } = end;
  return {
    look: { ...found, kind: 'unknown', problem },
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

type End =
  | { readonly kind: 'conclusive' }
  | { readonly kind: 'problem'; readonly problem: LookProblem; readonly retryAfterMs?: number };

const conclusive: End = { kind: 'conclusive' };

function createSearch(terms: LookTerms, pool: HttpPool) {
  const { wanted, known } = terms;
  const payees = new Set(terms.payees);
  const listed = new Set<string>();
  const otherPayee = new Set<string>();
  const ask = createReader(terms, pool);

  /** A listing with the payees of others is not the operator's: a client that pays by it does not pay the operator. */
  const isOurs = ({ payees: named }: ListedResource): boolean =>
    named.length === 0 || named.some((payee) => payees.has(payee));
  const note = (resources: readonly ListedResource[]): void => {
    for (const resource of resources) {
      const { key } = resource;
      if (key !== undefined && wanted.has(key)) (isOurs(resource) ? listed : otherPayee).add(key);
    }
  };
  const hasAll = (keys: ReadonlySet<string>): boolean => keys.isSubsetOf(listed);

  /** Reads a list by a payee as long as it has only our own: a service may ignore the payee, and answer with the list of all. */
  const readPayee = async (list: string, payTo: string): Promise<End | undefined> => {
    for (let offset = 0; ;) {
      const page = await ask(list, { payTo, offset });
      // a service without this list may answer with a page for people
      if (page.kind === 'problem') return isRefused(page) || page.problem === 'malformed' ? undefined : page;
      const { resources, count, total } = page;
      note(resources);
      offset += count;
      if (hasAll(wanted)) return conclusive;
      if (count === 0 || !resources.every(isOurs) || offset >= (total ?? 0)) return undefined;
    }
  };

  return {
    found: () => ({ listed, otherPayee: otherPayee.difference(listed) }),
    /** Undefined if they do not show that nothing changed. */
    async listsByPayee(): Promise<End | undefined> {
      for (const payTo of [...payees].slice(0, mostPayees))
        for (const list of ['merchant', 'resources']) {
          const end = await readPayee(list, payTo);
          if (end) return end;
          if (known.size > 0 && hasAll(known)) return conclusive;
        }
      return undefined;
    },
    /** It ends with an empty page, or where its total says so and no further page follows. */
    async wholeList(): Promise<End> {
      const read = new Set<string>();
      let total: number | undefined;
      for (let offset = 0; ;) {
        const page = await ask('resources', { offset });
        const isBehindEnd = total !== undefined && offset > 0 && offset >= total;
        if (page.kind === 'problem') return isBehindEnd && isRefused(page) ? conclusive : page;
        const { resources, count, digest } = page;
        if (count === 0) return endOf(offset, page.total);
        if (read.has(digest)) return isBehindEnd ? conclusive : { kind: 'problem', problem: 'repeated_page' };
        read.add(digest);
        note(resources);
        if (hasAll(wanted)) return conclusive;
        ({ total } = page);
        offset += count;
      }
    },
  };
}

/** @param offset of an empty page */
function endOf(offset: number, total: number | undefined): End {
  if (offset === 0) return { kind: 'problem', problem: 'empty' };
  return offset < (total ?? 0) ? { kind: 'problem', problem: 'incomplete' } : conclusive;
}

/** The service says that it has no such list or page. Too many requests say nothing of the kind. */
function isRefused({ problem }: { readonly problem: LookProblem }): boolean {
  return /^status_4(?!29)/.test(problem);
}

/** Asks for one page after another, within the limits of a look. */
function createReader({ url, maxPages, timeoutMs, lookTimeoutMs }: LookTerms, pool: HttpPool) {
  const { pathname } = new URL(url);
  const base = `${pathname.replace(/\/$/, '')}/discovery`;
  const untilMs = performance.now() + lookTimeoutMs;
  let pages = 0;
  return async (
    list: string,
    query: { readonly payTo?: string; readonly offset: number },
  ): Promise<PageAnswer> => {
    const leftMs = untilMs - performance.now();
    if (leftMs < 1) return { kind: 'problem', problem: 'too_slow' };
    if (pages === maxPages) return { kind: 'problem', problem: 'too_many_pages' };
    pages += 1;
    const asked = new URLSearchParams({
      ...(query.payTo !== undefined && { payTo: query.payTo }),
      limit: String(pageLimit),
      offset: String(query.offset),
    });
    return readPage(
      await pool.request({
        method: 'GET',
        path: `${base}/${list}?${asked.toString()}`,
        headers: { accept: 'application/json' },
        timeoutMs: Math.min(timeoutMs, leftMs),
        maxResponseBytes: maxPageBytes,
      }),
    );
  };
}

/** What is read of a listed resource. */
interface ListedResource {
  readonly address: string;
  /** Undefined for what is not on the web, such as a tool. */
  readonly key: string | undefined;
  /** In lower case. */
  readonly payees: readonly string[];
}

type PageAnswer =
  | {
      readonly kind: 'page';
      readonly resources: readonly ListedResource[];
      /** Of all its items, also of those that are not resources. */
      readonly count: number;
      /** How many the whole list has, if the page says it. */
      readonly total: number | undefined;
      /** The same for pages with the same resources. */
      readonly digest: string;
    }
  | { readonly kind: 'problem'; readonly problem: LookProblem; readonly retryAfterMs?: number };

const mostOptions = 64;
/** Some twenty milliseconds of work; a page of real resources has a tenth of these. */
const pageBounds = { maxDepth: 128, maxMarks: 200_000 };

/** A page of a discovery service, which is not trusted: items that are not resources are left out. */
function readPage(answer: HttpAnswer): PageAnswer {
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
  const options: unknown[] = Array.isArray(accepts) ? accepts.slice(0, mostOptions) : [];
  const payees = options.flatMap((option) => {
    const payTo = isObject(option) ? option['payTo'] : undefined;
    return typeof payTo === 'string' ? [payTo.toLowerCase()] : [];
  });
  return { address: named, key: listingKey(named), payees };
}

import type { Look, LookProblem } from '../../../base/values/discovery/listing.ts';
import { createHttpPool, type HttpPool } from '../../../base/peers/http/http.ts';
import { type ListedResource, type PageAnswer, readPage } from './discovery-page.ts';

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
 * rejects. The whole list may have hundreds of pages; services that list by payee tell in one whether all is as it was.
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

  /** A listing with the payees of others is not ours: whoever pays by it does not pay us. */
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
    /** Undefined where they do not show that all is as it was. */
    async listsByPayee(): Promise<End | undefined> {
      for (const payTo of [...payees].slice(0, mostPayees))
        for (const list of ['merchant', 'resources']) {
          const end = await readPayee(list, payTo);
          if (end) return end;
          if (known.size > 0 && hasAll(known)) return conclusive;
        }
      return undefined;
    },
    /** It ends with an empty page, or where its total says so and what follows is no further page. */
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

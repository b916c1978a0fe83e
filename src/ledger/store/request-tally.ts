import type { LedgerEvent } from '../rules/event.ts';
import type { SignInMethod } from '../rules/identity-events.ts';
import type { SummedRefusal } from '../rules/request-events.ts';
import { leafHash, RightEdge } from '../../base/values/log/merkle.ts';
import { type JobId, jobKey } from '../../base/values/job.ts';
import type { Hex } from '../../base/values/primitives.ts';
import type { Lane } from './lane.ts';

/** Refusals, unpaid quotes and sessions that are summed and not recorded one by one. */
export interface RequestTally {
  /** A refusal of a client over its budget, of a full lane, or beyond the ledger's allowance. */
  addRefusal(type: SummedRefusal): void;
  /** A session beyond the ledger's allowance. */
  addSession(method: SignInMethod, isSignUp: boolean): void;
  /** A summarised quote. */
  addQuote(job: JobId, digest: Hex): void;
  /**
   * Records the sums since the last time in one append, whatever else waits for the lane. Nothing if there were none. Sums that
   * could not be recorded are recorded first. Not to be called again before it resolves.
   */
  record(lane: Lane): Promise<void>;
}

interface Sums {
  readonly refusals: Map<SummedRefusal, number>;
  readonly sessions: Map<SignInMethod, { count: number; sign_ups: number }>;
  readonly quotes: Map<string, JobId & { count: number }>;
  /** Over the quotes' digests: the list itself is not kept. */
  readonly tree: RightEdge;
}

const stream = 'requests';

const emptySums = (): Sums => ({
  refusals: new Map(),
  sessions: new Map(),
  quotes: new Map(),
  tree: new RightEdge(),
});

export function createRequestTally(): RequestTally {
  let sums = emptySums();
  let unrecorded: LedgerEvent[] = [];
  const send = async (lane: Lane): Promise<void> => {
    if (unrecorded.length === 0) return;
    await lane.append({ stream, events: unrecorded }, { urgent: true });
    unrecorded = [];
  };
  return {
    addRefusal: (type) => sums.refusals.set(type, (sums.refusals.get(type) ?? 0) + 1),
    addSession(method, isSignUp) {
      const { count, sign_ups } = sums.sessions.get(method) ?? { count: 0, sign_ups: 0 };
      sums.sessions.set(method, { count: count + 1, sign_ups: sign_ups + (isSignUp ? 1 : 0) });
    },
    addQuote({ serviceId, jobIndex }, digest) {
      const key = jobKey({ serviceId, jobIndex });
      const sum = sums.quotes.get(key);
      if (sum) sum.count += 1;
      else sums.quotes.set(key, { serviceId, jobIndex, count: 1 });
      sums.tree.append(leafHash(Buffer.from(digest.slice(2), 'hex')));
    },
    async record(lane) {
      await send(lane);
      unrecorded = eventsOf(sums);
      sums = emptySums();
      await send(lane);
    },
  };
}

function eventsOf({ refusals, sessions, quotes, tree }: Sums): LedgerEvent[] {
  const events: LedgerEvent[] = [];
  if (refusals.size > 0)
    events.push({ type: 'refusals_counted', data: { counts: Object.fromEntries(refusals) } });
  if (sessions.size > 0) {
    const counts = [...sessions].map(([method, sum]) => ({ method, ...sum }));
    events.push({ type: 'sessions_counted', data: { sessions: counts } });
  }
  if (quotes.size > 0) {
    const counts = [...quotes.values()]
      .toSorted((a, b) => a.serviceId - b.serviceId || a.jobIndex - b.jobIndex)
      .map(({ serviceId, jobIndex, count }) => ({ service_id: serviceId, job_index: jobIndex, count }));
    events.push({
      type: 'quotes_issued',
      data: { quotes: counts, root: `0x${tree.root().toString('hex')}` },
    });
  }
  return events;
}

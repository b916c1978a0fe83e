import { readProgressTimes } from '../store/call-progress.ts';
import { readGrownStreams, type SeenStream } from '../../ledger/store/streams.ts';
import { pause } from '../../base/runtime/pause.ts';
import { createConcurrencyLimit } from '../../base/runtime/concurrency-limit.ts';
import type { Ledger } from '../../ledger/store/ledger.ts';

/** A stream, and where progress counts too, that of its call. */
interface Seen extends SeenStream {
  /** `atMs`: when the progress was reported that the reader has seen; 0 for none. */
  readonly progress?: { readonly callId: number; readonly atMs: number } | undefined;
}

interface Wait extends Seen {
  readonly wake: () => void;
}

/** How often events that other processes have recorded are looked for, while someone waits. */
const lookEveryMs = 100;

/** One of this many looks also looks for progress. */
const progressEvery = 10;

const readsAtOnce = 4;

export type StreamWatch = ReturnType<typeof createStreamWatch>;

/** Tells those who wait for a stream that it has grown. However many wait, they cost one query a look and no connection each. */
export function createStreamWatch({ pool, db }: Pick<Ledger, 'pool' | 'db'>, isStopping: () => boolean) {
  const waits = new Map<string, Set<Wait>>();
  let isLooking = false;
  /** The ledger's last place at the last look. */
  let lookedAtSeq = 0;
  /** Someone has begun to wait since the last look, which may have passed over what they wait for. */
  let hasNewWait = false;

  const wake = (stream: string): void => {
    for (const wait of waits.get(stream) ?? []) wait.wake();
  };
  const look = async (): Promise<void> => {
    const seen = [...waits].map(([stream, all]) => ({
      stream,
      version: Math.min(...[...all].map(({ version }) => version)),
    }));
    const afterSeq = hasNewWait ? 0 : lookedAtSeq;
    hasNewWait = false;
    const { lastSeq, grown } = await readGrownStreams(pool, seen, afterSeq);
    lookedAtSeq = lastSeq;
    for (const stream of grown) wake(stream);
  };
  let looks = 0;
  const lookForProgress = async (): Promise<void> => {
    if (++looks % progressEvery !== 0) return;
    const asking = [...waits.values()].flatMap((all) => [...all].filter(({ progress }) => progress));
    if (asking.length === 0) return;
    const callIds = new Set(asking.map(({ progress }) => progress?.callId ?? 0));
    const times = await readProgressTimes(db, [...callIds]);
    for (const { progress, wake: tell } of asking)
      if (progress && (times.get(progress.callId) ?? 0) > progress.atMs) tell();
  };
  // a request that waits is answered when its time is over, and the read of that answer finds the outage
  const lookAgain = (): void => {
    hasNewWait = true;
  };
  const lookWhileAwaited = async (): Promise<void> => {
    isLooking = true;
    while (waits.size > 0) {
      await pause(lookEveryMs);
      if (isStopping()) for (const stream of waits.keys()) wake(stream);
      else await look().then(lookForProgress).catch(lookAgain);
    }
    isLooking = false;
  };

  return {
    /** Resolves when the stream has an event after `version`, when its call has other progress than the seen one, when `over` aborts, or when the process shuts down. */
    grown({ stream, version, progress }: Seen, over: AbortSignal): Promise<void> {
      return new Promise((resolve) => {
        if (over.aborted || isStopping()) return resolve();
        const all = waits.get(stream) ?? new Set();
        waits.set(stream, all);
        const wait: Wait = {
          stream,
          version,
          progress,
          wake() {
            all.delete(wait);
            if (all.size === 0 && waits.get(stream) === all) waits.delete(stream);
            over.removeEventListener('abort', wait.wake);
            resolve();
          },
        };
        all.add(wait);
        over.addEventListener('abort', wait.wake);
        hasNewWait = true;
        if (!isLooking) void lookWhileAwaited();
      });
    },
    /** This process has recorded an event of the stream: those who wait for it need no look. */
    noteGrown: wake,
    /** Those who were woken together read in turns: they must not take all connections of the database from those who pay. */
    turns: createConcurrencyLimit(readsAtOnce),
  };
}

/**
 * The same as `grown()`, at most for `ms`, after which nothing waits any longer. A process that shuts down is not informed of growth: `ms` pass
 * there.
 */
export async function grownWithin(
  { streams: { grown }, stopping }: { readonly streams: StreamWatch; readonly stopping: () => boolean },
  seen: Seen,
  over: AbortSignal,
  ms: number,
): Promise<void> {
  const ended = new AbortController();
  const either = AbortSignal.any([over, ended.signal]);
  const waited = pause(ms, either);
  await (stopping() ? waited : Promise.race([grown(seen, either), waited]));
  ended.abort();
}

import type pg from 'pg';
import { createBoundedCache } from '../../../base/values/bounded-cache.ts';
import type { RecordedEvent } from '../../../ledger/rules/event.ts';
import { readStreamsUpTo } from '../../../ledger/store/projection.ts';

const lastOnes: ReadonlySet<string> = new Set(['completed', 'chat_completed', 'chat_failed']);

/** Of streams whose call has not ended. The events of one take about 10 KB. */
const maxStreams = 4_000;

/**
 * The first events of the streams that are under way, so that the next ones can be folded without reading those again. It
 * holds facts that never change: it cannot be stale, only incomplete, and missing facts are read.
 */
export interface StreamMemory {
  /** Whole streams up to `last`, from their next events in order. */
  complete(pool: pg.Pool, next: readonly RecordedEvent[], last: number): Promise<RecordedEvent[][]>;
}

export function createStreamMemory(): StreamMemory {
  const known = createBoundedCache<string, readonly RecordedEvent[]>(maxStreams);

  const remember = (stream: string, events: readonly RecordedEvent[]): void => {
    // rarely followed by another event
    if (events.some(({ type }) => lastOnes.has(type))) known.delete(stream);
    else known.set(stream, events);
  };

  return {
    async complete(pool, next, last) {
      const unknown: string[] = [];
      const whole: RecordedEvent[][] = [];
      for (const [stream, events] of Map.groupBy(next, (event) => event.stream)) {
        const first = known.get(stream) ?? [];
        const version = first.at(-1)?.version ?? 0;
        if ((events[0]?.version ?? 0) > version + 1) unknown.push(stream);
        else whole.push([...first, ...events.filter((event) => event.version > version)]);
      }
      whole.push(...(await readStreamsUpTo(pool, unknown, last)));
      for (const events of whole) remember(events[0]?.stream ?? '', events);
      // another generation, or a shorter step after an event that could not be read, is before the known events
      return whole.map((events) => events.filter(({ seq }) => seq <= last));
    },
  };
}

import type pg from 'pg';
import { readExportEnd, readLeafLines, readPassedMoment } from '../../../ledger/store/export.ts';
import { leavesInFile, splitLines } from '../../../audit/use-cases/log/export-file.ts';

/** The given ledger does not allow to write books. The message is a whole sentence. */
export class ExportError extends Error {
  override readonly name = 'ExportError';
}

/** A ledger that can be read several times, with the same events each time. */
export interface LedgerSource {
  /** The current time by the clock of this source, in Unix milliseconds. */
  readonly nowMs: number;
  /** The database that it is, whose postings are read; undefined for a file. */
  readonly pool: pg.Pool | undefined;
  /** All leaves in order, in batches. */
  leaves(): AsyncIterable<readonly Buffer[]>;
  /** Whether all events before `toMs` are included. Call it after reading all leaves. */
  isCompleteTo(toMs: number): boolean;
}

const leavesAtOnce = 2_000;

/** The ledger in a database, up to its current end. */
export async function openDatabaseSource(pool: pg.Pool): Promise<LedgerSource> {
  const nowMs = await readPassedMoment(pool);
  const { last } = await readExportEnd(pool);
  return {
    nowMs,
    pool,
    isCompleteTo: (toMs) => toMs <= nowMs,
    async *leaves() {
      for (let after = 0; ;) {
        const page = await readLeafLines(pool, after, last, leavesAtOnce);
        if (!page) return;
        yield splitLines(page.lines).lines;
        after = page.last;
      }
    },
  };
}

/**
 * The ledger in a file that `tollbook export --format jsonl` wrote. The file does not contain the time of the export:
 * without `exportedAtMs` it is complete only up to its last event.
 */
export function openFileSource(file: string, nowMs: number, exportedAtMs = -Infinity): LedgerSource {
  return {
    nowMs,
    pool: undefined,
    isCompleteTo: (toMs) => toMs <= exportedAtMs,
    leaves: () => leavesInFile(file),
  };
}

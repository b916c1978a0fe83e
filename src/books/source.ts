import { createReadStream } from 'node:fs';
import type pg from 'pg';
import { readExportEnd, readLeafLines, readPassedMoment } from '../store/export.ts';
import { isTrailer, takeLines } from '../log/tree-roots.ts';

/** The given ledger does not allow to write books. The message is a whole sentence. */
export class ExportError extends Error {
  override readonly name = 'ExportError';
}

/** A ledger that can be read several times, with the same events each time. */
export interface LedgerSource {
  /** The current time by the clock of this source, in Unix milliseconds. */
  readonly nowMs: number;
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
    isCompleteTo: (toMs) => toMs <= nowMs,
    async *leaves() {
      for (let after = 0; ;) {
        const page = await readLeafLines(pool, after, last, leavesAtOnce);
        if (!page) return;
        yield wholeLines(page.lines).lines;
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
    isCompleteTo: (toMs) => toMs <= exportedAtMs,
    async *leaves() {
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20 })) {
        const read = wholeLines(Buffer.concat([rest, chunk as Buffer]));
        rest = read.rest;
        yield read.lines.filter((line) => !isTrailer(line));
      }
      if (rest.length > 0)
        throw new ExportError(
          `${file} ends in the middle of a line: it is truncated. Export the ledger again`,
        );
    },
  };
}

function wholeLines(bytes: Buffer): { readonly lines: readonly Buffer[]; readonly rest: Buffer } {
  const lines: Buffer[] = [];
  const end = takeLines(bytes, (line) => lines.push(line));
  return { lines, rest: bytes.subarray(end) };
}

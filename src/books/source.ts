import { createReadStream } from 'node:fs';
import type pg from 'pg';
import { readExportEnd, readLeafLines, readPassedMoment } from '../store/export.ts';
import { isTrailer, takeLines } from '../log/tree-roots.ts';

/** Why no books can be made of what was given; a whole sentence. */
export class ExportError extends Error {}

/** A ledger to read from its first event on, as often as is needed: the same events every time. */
export interface LedgerSource {
  /** The clock that says what is over, in Unix milliseconds. */
  readonly nowMs: number;
  /** Leaves in their order, many at a time; ends at the ledger's end. */
  leaves(): AsyncIterable<readonly Buffer[]>;
  /** Whether no event from before `toMs` is missing; asked after all leaves were read. */
  isCompleteTo(toMs: number): boolean;
}

const leavesAtOnce = 2_000;

/** The ledger in a database, up to where it stands now. */
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
 * The ledger in a file that `tollbook export --format jsonl` wrote. The file does not say when that was: `exportedAtMs` is
 * somebody's word for it; without it, only what an event of the file has passed is complete.
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
      if (rest.length > 0) throw new ExportError(`${file} ends in the middle of a line: it was cut off`);
    },
  };
}

function wholeLines(bytes: Buffer): { readonly lines: readonly Buffer[]; readonly rest: Buffer } {
  const lines: Buffer[] = [];
  const end = takeLines(bytes, (line) => lines.push(line));
  return { lines, rest: bytes.subarray(end) };
}

import type pg from 'pg';
import { canonicalJson } from '../../../base/values/canonical-json.ts';
import { type ExportEnd, readExportEnd, readLeafLines } from '../../../ledger/store/export.ts';

const leavesAtOnce = 2_000;

/**
 * The ledger from an event on, up to its present end or the given one: the leaf bytes of every event, one line each, then the ledger's own counters. Canonical JSON has
 * no line breaks, so a line is the leaf byte for byte. Memory does not grow with the ledger.
 */
export async function* exportLines(pool: pg.Pool, fromSeq: number, end?: ExportEnd): AsyncGenerator<Buffer> {
  const { seq, last, counters } = end ?? (await readExportEnd(pool));
  for (let after = fromSeq - 1; ;) {
    const page = await readLeafLines(pool, after, last, leavesAtOnce);
    if (!page) break;
    yield page.lines;
    after = page.last;
  }
  yield Buffer.from(`${canonicalJson({ counters, export: 1, seq })}\n`);
}

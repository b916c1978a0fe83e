import type pg from 'pg';
import { canonicalJson } from '../domain/values/canonical-json.ts';
import { readExportEnd, readLeafLines } from '../store/export.ts';

const leavesAtOnce = 2_000;

/**
 * The ledger from an event on: the leaf bytes of every event, one line each, then the ledger's own counters. Canonical JSON has
 * no line breaks, so a line is the leaf byte for byte. Memory does not grow with the ledger.
 */
export async function* exportLines(pool: pg.Pool, fromSeq: number): AsyncGenerator<Buffer> {
  const { seq, last, counters } = await readExportEnd(pool);
  for (let after = fromSeq - 1; ;) {
    const page = await readLeafLines(pool, after, last, leavesAtOnce);
    if (!page) break;
    yield page.lines;
    after = page.last;
  }
  yield Buffer.from(`${canonicalJson({ counters, export: 1, seq })}\n`);
}

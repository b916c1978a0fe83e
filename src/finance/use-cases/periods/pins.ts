import { createHash } from 'node:crypto';
import { openBooks } from '../books/books.ts';
import { type ExportHashes, hashExports } from '../books/hash-exports.ts';
import type { LedgerSource } from '../books/source.ts';
import { type ReportJson, reportText } from '../../rules/reconcile/report.ts';
import { canonicalJson, type CanonicalValue } from '../../../base/values/canonical-json.ts';
import type { Period } from '../../../base/values/period.ts';
import { TreeRoots } from '../../../audit/use-cases/log/tree-roots.ts';

/** SHA-256 of a text or its bytes, as 0x and hex. */
export function hashOfText(text: string | Buffer): string {
  return `0x${createHash('sha256').update(text).digest('hex')}`;
}

/** SHA-256 of a report, as `reconcile --json` writes it. */
export function reportHash(report: ReportJson): string {
  return hashOfText(reportText(report));
}

/** SHA-256 of the part of a report about its period, without the head of the log that it read. */
export function outcomeHash(report: ReportJson): string {
  const { ledger, ...outcome } = report;
  return hashOfText(canonicalJson({ ...outcome, fault: ledger.fault } as unknown as CanonicalValue));
}

/** The exports of a period, by their hashes, and how many events they were made of. */
export async function pinExports(
  source: LedgerSource,
  period: Period,
): Promise<{ readonly events: number; readonly exports: ExportHashes }> {
  const books = await openBooks(source, period);
  return { events: books.events, exports: await hashExports(books) };
}

/** The root over the first `size` events of a ledger, in base64; undefined where it has fewer. */
export async function rootAt(source: LedgerSource, size: number): Promise<string | undefined> {
  const tree = new TreeRoots([size]);
  for await (const leaves of source.leaves()) {
    for (const leaf of leaves) if (tree.size < size) tree.append(leaf);
    if (tree.size === size) break;
  }
  return tree.at.get(size)?.toString('base64');
}

import type { z } from 'zod';
import { makeCursor, readCursor } from '../../ledger/rules/page-cursor.ts';
import { readReceiptKey } from '../../ledger/store/secrets.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import type { OperatorRoute } from './operator-access.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';
import type { ReplicaReads } from '../../ledger/use-cases/replicas.ts';

/** A request for one page of a list. */
export interface ListRequest<Q> {
  readonly query: Omit<Q, 'cursor'>;
  /** The place after which the page begins. */
  readonly after: number;
  /** The cursor of the next page; null after the last page. */
  cursorAfter<Row>(rows: readonly Row[], placeOf: (row: Row) => number): string | null;
}

/** Where operators' lists are read: their tokens always from the primary. */
export interface AuditSource {
  readonly ledger: LedgerReader;
  readonly reads: ReplicaReads;
}

/** GET /audit/{list}: a list in pages, for a token with the scope `audit:read`. */
export function auditList<Q extends { cursor?: string | undefined; limit: number }>(
  route: OperatorRoute,
  { ledger, reads }: AuditSource,
  list: string,
  schema: z.ZodType<Q>,
  answer: (from: LedgerReader, request: ListRequest<Q>) => Promise<object>,
): void {
  route('GET', `/audit/${list}`, 'audit:read', schema, async ({ parsed, request, reply }) => {
    const { cursor, ...query } = parsed;
    const key = await readReceiptKey(ledger.db);
    const after = cursor === undefined ? 0 : readCursor(key, list, cursor);
    if (after === undefined) return sendRefusal(request, reply, 'invalid_cursor');
    const cursorAfter: ListRequest<Q>['cursorAfter'] = (rows, placeOf) => {
      const last = rows.at(-1);
      return last !== undefined && rows.length === parsed.limit ? makeCursor(key, list, placeOf(last)) : null;
    };
    const { value, asOf } = await reads.older(ledger, (from) => answer(from, { query, after, cursorAfter }));
    return setAsOf(reply, asOf).send(value);
  });
}

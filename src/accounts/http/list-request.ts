import type { FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { z } from 'zod';
import { makeCursor, readCursor } from '../../ledger/rules/page-cursor.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { readReceiptKey } from '../../ledger/store/secrets.ts';
import { authorizeOperator } from './operator-access.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

/** A request for one page of a list. */
interface ListRequest<Q> {
  readonly kind: 'list';
  readonly query: Omit<Q, 'cursor'>;
  /** The place after which the page begins. */
  readonly after: number;
  /** The cursor of the next page; null after the last page. */
  cursorAfter<Row>(rows: readonly Row[], placeOf: (row: Row) => number): string | null;
}

interface ListRefusal {
  readonly kind: 'refused';
  readonly code: 'unauthorized' | 'forbidden' | 'invalid_request' | 'invalid_cursor';
}

/** Authorizes a request for a list and parses its query. The caller answers a refusal with its code. */
export async function readListRequest<Q extends { cursor?: string | undefined; limit: number }>(
  ledger: Ledger,
  request: FastifyRequest,
  schema: z.ZodType<Q>,
  list: string,
): Promise<ListRequest<Q> | ListRefusal> {
  const access = await authorizeOperator(ledger, request, 'audit:read');
  if (access.kind === 'refused') return access;
  const query = schema.safeParse(request.query);
  if (!query.success) return { kind: 'refused', code: 'invalid_request' };
  const { cursor, ...rest } = query.data;
  const key = await readReceiptKey(ledger.db);
  const after = cursor === undefined ? 0 : readCursor(key, list, cursor);
  if (after === undefined) return { kind: 'refused', code: 'invalid_cursor' };
  return {
    kind: 'list',
    query: rest,
    after,
    cursorAfter(rows, placeOf) {
      const last = rows.at(-1);
      return last !== undefined && rows.length === query.data.limit
        ? makeCursor(key, list, placeOf(last))
        : null;
    },
  };
}

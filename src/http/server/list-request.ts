import type { FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { z } from 'zod';
import { makeCursor, readCursor } from '../../projections/page-cursor.ts';
import type { LedgerDatabase } from '../../store/database.ts';
import { readReceiptKey } from '../../store/secrets.ts';
import { authorizeOperator } from '../identity/operator-access.ts';
import { sendRefusal } from './errors.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

/** A request for one page of a list. */
interface ListRequest<Q> {
  readonly query: Omit<Q, 'cursor'>;
  /** The place behind which the page begins. */
  readonly after: number;
  /** The cursor of the next page; null behind the last page. */
  cursorAfter<Row>(rows: readonly Row[], placeOf: (row: Row) => number): string | null;
}

/** Authorizes a request for a list and parses its query. Undefined where the request was refused: then the answer was sent. */
export async function readListRequest<Q extends { cursor?: string | undefined; limit: number }>(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
  schema: z.ZodType<Q>,
  list: string,
): Promise<ListRequest<Q> | undefined> {
  if (!(await authorizeOperator(ledger, request, reply, 'audit:read'))) return undefined;
  const query = schema.safeParse(request.query);
  if (!query.success) {
    sendRefusal(request, reply, 'invalid_request');
    return undefined;
  }
  const { cursor, ...rest } = query.data;
  const key = await readReceiptKey(ledger.db);
  const after = cursor === undefined ? 0 : readCursor(key, list, cursor);
  if (after === undefined) {
    sendRefusal(request, reply, 'invalid_cursor');
    return undefined;
  }
  return {
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

import type { FastifyInstance, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { z } from 'zod';
import { makeCursor, readCursor } from '../../ledger/rules/page-cursor.ts';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { readReceiptKey } from '../../ledger/store/secrets.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { authorizeOperator } from './operator-access.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

/** A request for one page of a list. */
export interface ListRequest<Q> {
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

/** GET /audit/{list}: a list in pages, for a token with the scope `audit:read`. */
export function auditList<Q extends { cursor?: string | undefined; limit: number }>(
  app: FastifyInstance,
  ledger: Ledger,
  list: string,
  schema: z.ZodType<Q>,
  answer: (request: ListRequest<Q>) => Promise<object>,
): void {
  app.get(`/audit/${list}`, async (request, reply) => {
    const read = await readListRequest(ledger, request, schema, list);
    if (read.kind === 'refused') return sendRefusal(request, reply, read.code);
    return reply.header('cache-control', 'no-store').send(await answer(read));
  });
}

async function readListRequest<Q extends { cursor?: string | undefined; limit: number }>(
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

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { listRefundsDue } from '../use-cases/refunds/list-refunds-due.ts';
import * as schemas from '../../audit/http/schemas/refunds.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { readListRequest } from '../../accounts/http/list-request.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

/** The refunds due, for a token with the scope `audit:read`. */
export function refundRoutes(ledger: Ledger) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/audit/refunds-due', (request, reply) => sendRefundsDue(ledger, request, reply));
  };
}

async function sendRefundsDue(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const list = await readListRequest(ledger, request, schemas.refundsDueQuery, 'refunds-due');
  if (list.kind === 'refused') return sendRefusal(request, reply, list.code);
  const { limit } = list.query;
  const { asOfSeq, rows, contradicted, changed, listed } = await listRefundsDue(
    ledger.pool,
    list.after,
    limit,
  );
  const answer: schemas.RefundsDue = {
    as_of_seq: asOfSeq,
    refunds_due: rows as schemas.RefundsDue['refunds_due'],
    contradicted: [...contradicted],
    changed: [...changed],
    next: list.cursorAfter(listed, (seq) => seq),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

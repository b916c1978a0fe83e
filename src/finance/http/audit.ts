import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { listRefundsDue } from '../use-cases/refunds/list-refunds-due.ts';
import { type RefundsDue, refundsDueQuery } from '../../audit/http/schemas/refunds.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { readListRequest } from '../../accounts/http/list-request.ts';
import { listReconciliations, readReconciliation } from '../../audit/store/reconciliations.ts';
import { authorizeOperator } from '../../accounts/http/operator-access.ts';
import * as schemas from './schemas/reconcile.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

async function sendRefundsDue(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const list = await readListRequest(ledger, request, refundsDueQuery, 'refunds-due');
  if (list.kind === 'refused') return sendRefusal(request, reply, list.code);
  const { limit } = list.query;
  const { asOfSeq, rows, contradicted, changed, listed } = await listRefundsDue(
    ledger.pool,
    list.after,
    limit,
  );
  const answer: RefundsDue = {
    as_of_seq: asOfSeq,
    refunds_due: rows as RefundsDue['refunds_due'],
    contradicted: [...contradicted],
    changed: [...changed],
    next: list.cursorAfter(listed, (seq) => seq),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

/** The refunds due and the reports of `tollbook reconcile`, for a token with the scope `audit:read`. */
export function financeRoutes(ledger: Ledger) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/audit/refunds-due', (request, reply) => sendRefundsDue(ledger, request, reply));
    app.get('/audit/reconciliations', (request, reply) => sendList(ledger, request, reply));
    app.get<{ Params: { reconciliation_id: string } }>(
      '/audit/reconciliations/:reconciliation_id',
      async (request, reply) => {
        const access = await authorizeOperator(ledger, request, 'audit:read');
        if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
        const id = schemas.reconciliationId.safeParse(Number(request.params.reconciliation_id));
        const found = id.success ? await readReconciliation(ledger.pool, id.data) : undefined;
        if (!found) return sendRefusal(request, reply, 'reconciliation_not_found');
        // the stored bytes: their hash is the one in the list
        return reply
          .header('cache-control', 'no-store')
          .type('application/json; charset=utf-8')
          .send(found.report);
      },
    );
  };
}

async function sendList(ledger: Ledger, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  const list = await readListRequest(ledger, request, schemas.reconciliationsQuery, 'reconciliations');
  if (list.kind === 'refused') return sendRefusal(request, reply, list.code);
  const { limit } = list.query;
  const rows = await listReconciliations(ledger.pool, list.after, limit);
  const answer: schemas.Reconciliations = {
    reconciliations: rows,
    next: list.cursorAfter(rows, ({ id }) => id),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

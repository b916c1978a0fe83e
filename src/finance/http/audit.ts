import type { FastifyInstance } from 'fastify';
import type pg from 'pg';
import type { z } from 'zod';
import type { LedgerDatabase } from '../../ledger/store/database.ts';
import { listRefundsDue } from '../use-cases/refunds/list-refunds-due.ts';
import { type RefundsDue, refundsDueQuery } from '../../audit/http/schemas/refunds.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { auditList, type ListRequest } from '../../accounts/http/list-request.ts';
import { listReconciliations, readReconciliation } from '../../audit/store/reconciliations.ts';
import { authorizeOperator } from '../../accounts/http/operator-access.ts';
import * as schemas from './schemas/reconcile.ts';

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

async function readRefundsDue(
  ledger: Ledger,
  list: ListRequest<z.infer<typeof refundsDueQuery>>,
): Promise<RefundsDue> {
  const { limit } = list.query;
  const { asOfSeq, rows, contradicted, changed, listed } = await listRefundsDue(
    ledger.pool,
    list.after,
    limit,
  );
  return {
    as_of_seq: asOfSeq,
    refunds_due: rows as RefundsDue['refunds_due'],
    contradicted: [...contradicted],
    changed: [...changed],
    next: list.cursorAfter(listed, (seq) => seq),
  };
}

/** The refunds due and the reports of `tollbook reconcile`, for a token with the scope `audit:read`. */
export function financeRoutes(ledger: Ledger) {
  return async (app: FastifyInstance): Promise<void> => {
    auditList(app, ledger, 'refunds-due', refundsDueQuery, (list) => readRefundsDue(ledger, list));
    auditList(app, ledger, 'reconciliations', schemas.reconciliationsQuery, (list) =>
      readReconciliations(ledger, list),
    );
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

async function readReconciliations(
  ledger: Ledger,
  list: ListRequest<z.infer<typeof schemas.reconciliationsQuery>>,
): Promise<schemas.Reconciliations> {
  const { limit } = list.query;
  const rows = await listReconciliations(ledger.pool, list.after, limit);
  return {
    reconciliations: rows,
    next: list.cursorAfter(rows, ({ id }) => id),
  };
}

import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { listRefundsDue } from '../use-cases/refunds/list-refunds-due.ts';
import { type RefundsDue, refundsDueQuery } from '../../audit/http/schemas/refunds.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { auditList, type AuditSource, type ListRequest } from '../../accounts/http/list-request.ts';
import { listReconciliations, readReconciliation } from '../../audit/store/reconciliations.ts';
import { operatorRoutesOn } from '../../accounts/http/operator-access.ts';
import * as schemas from './schemas/reconcile.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

async function readRefundsDue(
  ledger: LedgerReader,
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
export function financeRoutes(source: AuditSource) {
  const { ledger, reads } = source;
  return async (app: FastifyInstance): Promise<void> => {
    const route = operatorRoutesOn(app, ledger);
    auditList(route, source, 'refunds-due', refundsDueQuery, readRefundsDue);
    auditList(route, source, 'reconciliations', schemas.reconciliationsQuery, readReconciliations);
    route(
      'GET',
      '/audit/reconciliations/:reconciliation_id',
      'audit:read',
      z.unknown(),
      async ({ param, request, reply }) => {
        const id = schemas.reconciliationId.safeParse(Number(param));
        const { value: found, asOf } = await reads.older(ledger, async ({ pool }) =>
          id.success ? readReconciliation(pool, id.data) : undefined,
        );
        setAsOf(reply, asOf);
        if (!found) return sendRefusal(request, reply, 'reconciliation_not_found');
        // the stored bytes: their hash is the one in the list
        return reply.type('application/json; charset=utf-8').send(found.report);
      },
    );
  };
}

async function readReconciliations(
  ledger: LedgerReader,
  list: ListRequest<z.infer<typeof schemas.reconciliationsQuery>>,
): Promise<schemas.Reconciliations> {
  const { limit } = list.query;
  const rows = await listReconciliations(ledger.pool, list.after, limit);
  return {
    reconciliations: rows,
    next: list.cursorAfter(rows, ({ id }) => id),
  };
}

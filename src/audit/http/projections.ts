import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { OwnLogReaders } from '../use-cases/log/log-reader.ts';
import { readPaymentHistory, type PaymentHistory } from '../use-cases/projections/payment-history.ts';
import { creditText } from '../../base/values/price.ts';
import { isHex32 } from '../../base/values/primitives.ts';
import type { AccountCredit } from '../../ledger/store/projection.ts';
import { listAccountCredit, listJobDays, listPaidCalls, listPayments } from '../../ledger/store/payments.ts';
import { operatorRoutesOn } from '../../accounts/http/operator-access.ts';
import { setAsOf } from '../../ledger/http/as-of.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { auditList, type AuditSource, type ListRequest } from '../../accounts/http/list-request.ts';
import { proofJson } from './proofs-json.ts';
import * as schemas from './schemas/projections.ts';
import type { LedgerReader } from '../../ledger/store/ledger.ts';

const maxTotals = 5_000;

/** The read models and payment histories, for a token with the scope `audit:read`. */
export function projectionRoutes(source: AuditSource, logOn: OwnLogReaders) {
  const { ledger, reads } = source;
  return async (app: FastifyInstance): Promise<void> => {
    const route = operatorRoutesOn(app, ledger);
    auditList(route, source, 'payments', schemas.paymentsQuery, readPayments);
    const path = '/audit/payments/:quote_digest';
    route('GET', path, 'audit:read', z.unknown(), async ({ param, request, reply }) => {
      const digest = param.toLowerCase();
      const { value: history, asOf } = await reads.older(ledger, async ({ pool }) =>
        isHex32(digest) ? readPaymentHistory(pool, logOn(pool), digest) : undefined,
      );
      setAsOf(reply, asOf);
      if (!history) return sendRefusal(request, reply, 'payment_not_found');
      return reply.send(historyJson(digest, history));
    });
    auditList(route, source, 'calls', schemas.callsQuery, readCalls);
    auditList(route, source, 'credit', schemas.creditQuery, readCredit);
    route('GET', '/audit/totals', 'audit:read', schemas.totalsQuery, async ({ parsed, reply }) => {
      const { value, asOf } = await reads.older(ledger, (from) => readTotals(from, parsed));
      return setAsOf(reply, asOf).send(value);
    });
  };
}

async function readPayments(
  ledger: LedgerReader,
  list: ListRequest<z.infer<typeof schemas.paymentsQuery>>,
): Promise<schemas.AuditedPayments> {
  const { limit, from, to, service_id, job_index, ...plain } = list.query;
  const filters = {
    ...plain,
    serviceId: service_id,
    jobIndex: job_index,
    from: from === undefined ? undefined : new Date(from),
    to: to === undefined ? undefined : new Date(to),
  };
  const { asOfSeq, rows } = await listPayments(ledger.pool, filters, list.after, limit);
  return {
    as_of_seq: asOfSeq,
    payments: rows as schemas.AuditedPayments['payments'],
    next: list.cursorAfter(rows, ({ seq }) => seq),
  };
}

async function readCalls(
  ledger: LedgerReader,
  list: ListRequest<z.infer<typeof schemas.callsQuery>>,
): Promise<schemas.AuditedCalls> {
  const { limit, status, service_id: serviceId, job_index: jobIndex } = list.query;
  const page = await listPaidCalls(ledger.pool, { status, serviceId, jobIndex }, list.after, limit);
  return {
    as_of_seq: page.asOfSeq,
    calls: page.rows as schemas.AuditedCalls['calls'],
    next: list.cursorAfter(page.rows, (call) => call.call_id),
  };
}

async function readCredit(
  ledger: LedgerReader,
  list: ListRequest<z.infer<typeof schemas.creditQuery>>,
): Promise<schemas.AuditedCredit> {
  const { limit, account: name } = list.query;
  const { asOfSeq, rows } = await listAccountCredit(ledger.pool, { name }, list.after, limit);
  return {
    as_of_seq: asOfSeq,
    accounts: rows.map(accountJson),
    next: list.cursorAfter(rows, (account) => account.account_id),
  };
}

function accountJson({ name, ...row }: AccountCredit): schemas.AuditedCredit['accounts'][number] {
  return {
    account_id: row.account_id,
    account: name,
    balance: text(row.balance),
    held: text(row.held),
    granted: text(row.granted),
    topped_up: text(row.topped_up),
    captured: text(row.captured),
    expired: text(row.expired),
    last_seq: row.last_seq,
  };
}

function text(micros: string): string {
  return creditText(BigInt(micros));
}

async function readTotals(
  ledger: LedgerReader,
  { from, to, service_id: serviceId, job_index: jobIndex }: z.infer<typeof schemas.totalsQuery>,
): Promise<schemas.Totals> {
  const page = await listJobDays(ledger.pool, { from, to, serviceId, jobIndex }, maxTotals + 1);
  return {
    as_of_seq: page.asOfSeq,
    totals: page.rows.slice(0, maxTotals),
    complete: page.rows.length <= maxTotals,
  };
}

function historyJson(
  digest: string,
  { state, paid, quoteSource, head, events }: PaymentHistory,
): schemas.PaymentHistoryJson {
  return {
    quote_digest: digest,
    state,
    paid,
    quote_source: quoteSource ?? null,
    checkpoint: head?.note ?? null,
    events: events.map(({ event, leaf, proof }) => ({
      seq: event.seq,
      version: event.version,
      type: event.type,
      at: event.at,
      data: event.data,
      leaf_base64: leaf.toString('base64'),
      proof: head && proof ? proofJson(proof, head) : null,
    })),
  };
}

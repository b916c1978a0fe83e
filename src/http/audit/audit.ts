import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type pg from 'pg';
import type { z } from 'zod';
import { makeCursor, readCursor } from '../../projections/page-cursor.ts';
import type { LogReader } from '../../log/log-reader.ts';
import { readPaymentHistory, type PaymentHistory } from '../../projections/payment-history.ts';
import { creditText } from '../../domain/credit/price.ts';
import { isHex32 } from '../../domain/values/primitives.ts';
import { type AccountCredit, listAccountCredit } from '../../store/credit-projection.ts';
import type { LedgerDatabase } from '../../store/database.ts';
import { listJobDays, listPaidCalls, listPayments } from '../../store/payments.ts';
import { listRefundsDue } from '../../store/refunds.ts';
import { readReceiptKey } from '../../store/secrets.ts';
import { authorizeOperator } from '../identity/operator-access.ts';
import { sendRefusal } from '../server/errors.ts';
import { proofJson } from '../log/log.ts';
import * as schemas from '../schemas/audit.ts';

const mostTotals = 5_000;

interface Ledger {
  readonly pool: pg.Pool;
  readonly db: LedgerDatabase;
}

/** What finance reads over HTTP: every route wants a token with the scope `audit:read`. */
export function auditRoutes(ledger: Ledger, reader: LogReader | undefined) {
  return async (app: FastifyInstance): Promise<void> => {
    app.get('/audit/payments', (request, reply) => sendPayments(ledger, request, reply));
    app.get<{ Params: { quote_digest: string } }>('/audit/payments/:quote_digest', async (request, reply) => {
      if (!(await authorizeOperator(ledger, request, reply, 'audit:read'))) return reply;
      const digest = request.params.quote_digest.toLowerCase();
      const story = isHex32(digest) ? await readPaymentHistory(ledger.pool, reader, digest) : undefined;
      if (!story) return sendRefusal(request, reply, 'payment_not_found');
      return reply.header('cache-control', 'no-store').send(storyJson(digest, story));
    });
    app.get('/audit/calls', (request, reply) => sendCalls(ledger, request, reply));
    app.get('/audit/credit', (request, reply) => sendCredit(ledger, request, reply));
    app.get('/audit/totals', (request, reply) => sendTotals(ledger, request, reply));
    app.get('/audit/refunds-due', (request, reply) => sendRefundsDue(ledger, request, reply));
  };
}

async function sendPayments(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const asked = await readAsked(ledger, request, reply, schemas.paymentsQuery, 'payments');
  if (!asked) return reply;
  const { limit, from, to, service_id, job_index, ...plain } = asked.query;
  const filters = {
    ...plain,
    serviceId: service_id,
    jobIndex: job_index,
    from: from === undefined ? undefined : new Date(from),
    to: to === undefined ? undefined : new Date(to),
  };
  const { asOfSeq, rows } = await listPayments(ledger.pool, filters, asked.after, limit);
  const answer: schemas.AuditedPayments = {
    as_of_seq: asOfSeq,
    payments: rows as schemas.AuditedPayments['payments'],
    next: asked.cursorAfter(rows, ({ seq }) => seq),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

async function sendCalls(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const asked = await readAsked(ledger, request, reply, schemas.callsQuery, 'calls');
  if (!asked) return reply;
  const { limit, status, service_id: serviceId, job_index: jobIndex } = asked.query;
  const page = await listPaidCalls(ledger.pool, { status, serviceId, jobIndex }, asked.after, limit);
  const answer: schemas.AuditedCalls = {
    as_of_seq: page.asOfSeq,
    calls: page.rows as schemas.AuditedCalls['calls'],
    next: asked.cursorAfter(page.rows, (call) => call.call_id),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

async function sendRefundsDue(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const asked = await readAsked(ledger, request, reply, schemas.refundsDueQuery, 'refunds-due');
  if (!asked) return reply;
  const { limit } = asked.query;
  const { asOfSeq, rows } = await listRefundsDue(ledger.pool, asked.after, limit);
  const answer: schemas.RefundsDue = {
    as_of_seq: asOfSeq,
    refunds_due: rows as schemas.RefundsDue['refunds_due'],
    next: asked.cursorAfter(rows, ({ seq }) => seq),
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

async function sendCredit(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const asked = await readAsked(ledger, request, reply, schemas.creditQuery, 'credit');
  if (!asked) return reply;
  const { limit, account: name } = asked.query;
  const { asOfSeq, rows } = await listAccountCredit(ledger.pool, { name }, asked.after, limit);
  const answer: schemas.AuditedCredit = {
    as_of_seq: asOfSeq,
    accounts: rows.map(accountJson),
    next: asked.cursorAfter(rows, (account) => account.account_id),
  };
  return reply.header('cache-control', 'no-store').send(answer);
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

async function sendTotals(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  if (!(await authorizeOperator(ledger, request, reply, 'audit:read'))) return reply;
  const query = schemas.totalsQuery.safeParse(request.query);
  if (!query.success) return sendRefusal(request, reply, 'invalid_request');
  const { from, to, service_id: serviceId, job_index: jobIndex } = query.data;
  const page = await listJobDays(ledger.pool, { from, to, serviceId, jobIndex }, mostTotals + 1);
  const answer: schemas.Totals = {
    as_of_seq: page.asOfSeq,
    totals: page.rows.slice(0, mostTotals),
    complete: page.rows.length <= mostTotals,
  };
  return reply.header('cache-control', 'no-store').send(answer);
}

interface Asked<Q> {
  readonly query: Omit<Q, 'cursor'>;
  /** Where the list goes on. */
  readonly after: number;
  /** The cursor behind a page; null where it is the last. */
  cursorAfter<Row>(rows: readonly Row[], placeOf: (row: Row) => number): string | null;
}

/** A list's query and where it goes on. Undefined where the answer was given already. */
export async function readAsked<Q extends { cursor?: string | undefined; limit: number }>(
  ledger: Ledger,
  request: FastifyRequest,
  reply: FastifyReply,
  schema: z.ZodType<Q>,
  list: string,
): Promise<Asked<Q> | undefined> {
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

function storyJson(digest: string, { state, paid, head, events }: PaymentHistory): schemas.AuditedStoryJson {
  return {
    quote_digest: digest,
    state,
    paid,
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

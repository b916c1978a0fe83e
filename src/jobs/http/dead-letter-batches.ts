import type { z } from 'zod';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { JobsContext } from '../use-cases/context.ts';
import {
  type CauseReport,
  type DeadLetterBatch,
  groupDeadLetters,
  listed,
  type BatchReport,
} from '../../calls/use-cases/dead-letters.ts';
import { discardCalls } from '../../calls/use-cases/discard-call.ts';
import { requeueCalls } from '../../calls/use-cases/requeue-call.ts';
import { authorizeOperator, operatorsOf } from '../../accounts/http/operator-access.ts';
import {
  causesQuery,
  type DeadLetterCausesJson,
  discardManyRequest,
  type DiscardReportJson,
  type RequeueReportJson,
  requeueRequest,
} from './schemas/operator.ts';
import { sendInvalid, sendRefusal } from '../../ledger/http/errors.ts';

/** The operator's routes for many dead letters, in batches. */
export function deadLetterBatchRoutes(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    const operators = operatorsOf(current());
    const guard = { onRequest: [operators.require('calls:write'), refuseQuery] };
    app.get('/operator/dead-letters/causes', async (request, reply) => {
      const context = current();
      const access = await authorizeOperator(context, request, 'calls:read');
      if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
      const query = causesQuery.safeParse(request.query);
      if (!query.success) return sendInvalid(request, reply, query.error);
      const { choice, after } = batchOf({ ...query.data, limit: 0 });
      const report = listed(await groupDeadLetters(context.db, choice, after));
      return reply.header('cache-control', 'no-store').send(causesJson(report));
    });

    app.post('/operator/dead-letters/requeue', guard, async (request, reply) => {
      const context = current();
      const body = requeueRequest.safeParse(request.body ?? {});
      if (!body.success) return sendInvalid(request, reply, body.error);
      const report = await requeueCalls(context, {
        ...batchOf(body.data),
        isDryRun: body.data.dry_run,
        by: { token_id: operators.of(request).tokenId },
      });
      context.onCallReleased();
      const answer: RequeueReportJson = { requeued: report.done, ...skipsOf(report) };
      return reply.send(answer);
    });

    app.post('/operator/dead-letters/discard', guard, async (request, reply) => {
      const body = discardManyRequest.safeParse(request.body);
      if (!body.success) return sendInvalid(request, reply, body.error);
      const { name: operator, tokenId: token_id } = operators.of(request);
      const { why, count, dry_run: isDryRun } = body.data;
      const batch = { ...batchOf(body.data), by: { why, operator, token_id } };
      const meant = await discardCalls(current(), { ...batch, isDryRun: true });
      if (!isDryRun && meant.done !== count)
        return sendRefusal(request, reply, 'count_differs', { context: { meant: meant.done } });
      const report = isDryRun ? meant : await discardCalls(current(), { ...batch, isDryRun: false });
      const answer: DiscardReportJson = { discarded: report.done, ...skipsOf(report) };
      return reply.send(answer);
    });
  };
}

/** The body says which dead letters are meant: a filter in the address would be passed over, and more of them changed. */
async function refuseQuery(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
  return request.url.includes('?') ? sendRefusal(request, reply, 'invalid_request') : undefined;
}

/** The dead letters that a request means. */
function batchOf(asked: Omit<z.infer<typeof requeueRequest>, 'dry_run'>): DeadLetterBatch {
  const { service_id: serviceId, job_index: jobIndex, reason, runner, since, before, cause } = asked;
  const times = { since: timeOf(since), before: timeOf(before) };
  const choice = { serviceId, jobIndex, reason, runner, cause, ...times };
  return { choice, after: asked.after, max: asked.limit };
}

function timeOf(text: string | undefined): Date | undefined {
  return text === undefined ? undefined : new Date(text);
}

function skipsOf<Why extends string>({ skipped, next }: BatchReport<Why>) {
  const skips = skipped.map(({ callId, why }) => ({ call_id: callId, why }));
  return { skipped: skips, next: next ?? null };
}

function causesJson({ groups, others, next }: CauseReport): DeadLetterCausesJson {
  const causes = groups.map(
    ({ reason, oldest, newest, exampleCallId, cause, words, calls, jobs, runners }) => ({
      cause,
      reason: reason ?? null,
      words,
      calls,
      jobs: [...jobs],
      runners: [...runners],
      oldest: oldest.toISOString(),
      newest: newest.toISOString(),
      example_call_id: exampleCallId,
    }),
  );
  return { causes, others, next: next ?? null };
}

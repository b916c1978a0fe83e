import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { JobsContext } from '../use-cases/context.ts';
import { failureCause } from '../../base/values/failure-cause.ts';
import {
  type BatchReport,
  type CauseReport,
  type DeadLetterBatch,
  groupDeadLetters,
  listed,
} from '../../calls/use-cases/dead-letters.ts';
import { discardCall, discardCalls } from '../../calls/use-cases/discard-call.ts';
import { isRunnerPaused, pauseRunner, resumeRunner } from '../../calls/use-cases/pause-runner.ts';
import { requeueCall, requeueCalls } from '../../calls/use-cases/requeue-call.ts';
import { listDeadCalls } from '../../calls/store/calls.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { type OperatorRoute, operatorRoutesOn } from '../../accounts/http/operator-access.ts';
import { idOf } from '../../base/http/request-values.ts';
import {
  causesQuery,
  type DeadLetter,
  type DeadLetterCausesJson,
  deadLettersQuery,
  discardManyRequest,
  discardRequest,
  type DiscardReportJson,
  type RequeueReportJson,
  requeueRequest,
} from './schemas/operator.ts';

/** The operator's routes: each requires a token with the scope it names. */
export function operatorRoutes(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    const route = operatorRoutesOn(app, current());
    deadLetterBatchRoutes(route, current);
    route('GET', '/operator/dead-letters', 'calls:read', deadLettersQuery, async ({ parsed, reply }) => {
      const calls = await listDeadCalls(current().db, parsed.limit, parsed.after);
      return reply.send({ calls: calls.map(deadLetterJson) });
    });

    const path = '/operator/dead-letters/:call_id';
    route('POST', `${path}/requeue`, 'calls:write', z.unknown(), async (asked) => {
      const { param, operator, request, reply } = asked;
      const context = current();
      const callId = idOf(param);
      const { kind } = await requeueCall(context, callId, { token_id: operator.tokenId });
      if (kind === 'refunded') return sendRefusal(request, reply, 'call_refunded');
      if (kind === 'refund_under_way') return sendRefusal(request, reply, 'refund_under_way');
      if (kind === 'unpaid') return sendRefusal(request, reply, 'call_unpaid');
      if (kind === 'not_dead') return sendRefusal(request, reply, 'call_not_found');
      context.onCallReleased();
      return reply.send({ call_id: callId, status: 'enqueued' });
    });

    route('POST', `${path}/discard`, 'calls:write', discardRequest, async (asked) => {
      const { parsed, param, operator, request, reply } = asked;
      const callId = idOf(param);
      const by = { operator: operator.name, token_id: operator.tokenId };
      const { kind } = await discardCall(current(), callId, { ...parsed, ...by });
      if (kind === 'not_found') return sendRefusal(request, reply, 'call_not_found');
      if (kind === 'with_runner') return sendRefusal(request, reply, 'call_leased');
      return reply.send({ call_id: callId, status: 'discarded' });
    });

    for (const [verb, change] of [
      ['pause', pauseRunner],
      ['resume', resumeRunner],
    ] as const) {
      route('POST', `/operator/runners/:runner/${verb}`, 'calls:write', z.unknown(), async (asked) => {
        const { param, operator, request, reply } = asked;
        const context = current();
        const runner = context.config.runners.find(({ name }) => name === param);
        if (!runner) return sendRefusal(request, reply, 'runner_not_found');
        await change(context, runner, { operator: operator.name, token_id: operator.tokenId });
        context.onCallReleased();
        return reply.send({ runner: runner.name, paused: await isRunnerPaused(context, runner) });
      });
    }
  };
}

function deadLetterJson(call: Awaited<ReturnType<typeof listDeadCalls>>[number]): DeadLetter {
  return {
    call_id: call.call_id,
    ...(call.trigger ? { trigger: call.trigger } : { quote_digest: call.stream }),
    service_id: call.service_id,
    job_index: call.job_index,
    attempts: call.attempt,
    reason: call.last_reason,
    cause: failureCause(call.last_reason, call.last_error).key,
    runner: call.last_runner,
    last_error: call.last_error,
    dead_since: call.due_at.toISOString(),
    created_at: call.created_at.toISOString(),
  };
}

/** The operator's routes for many dead letters, in batches. */
function deadLetterBatchRoutes(route: OperatorRoute, current: () => JobsContext): void {
  route('GET', '/operator/dead-letters/causes', 'calls:read', causesQuery, async ({ parsed, reply }) => {
    const { choice, after } = batchOf({ ...parsed, limit: 0 });
    const report = listed(await groupDeadLetters(current().db, choice, after));
    return reply.send(causesJson(report));
  });

  const requeueBody = z.preprocess((body) => body ?? {}, requeueRequest);
  route('POST', '/operator/dead-letters/requeue', 'calls:write', requeueBody, async (asked) => {
    const { parsed, operator, request, reply } = asked;
    if (hasQuery(request)) return sendRefusal(request, reply, 'invalid_request');
    const context = current();
    const report = await requeueCalls(context, {
      ...batchOf(parsed),
      isDryRun: parsed.dry_run,
      by: { token_id: operator.tokenId },
    });
    context.onCallReleased();
    const answer: RequeueReportJson = { requeued: report.done, ...skipsOf(report) };
    return reply.send(answer);
  });

  route('POST', '/operator/dead-letters/discard', 'calls:write', discardManyRequest, async (asked) => {
    const { parsed, operator, request, reply } = asked;
    if (hasQuery(request)) return sendRefusal(request, reply, 'invalid_request');
    const { why, count, dry_run: isDryRun } = parsed;
    const by = { why, operator: operator.name, token_id: operator.tokenId };
    const batch = { ...batchOf(parsed), by };
    const meant = await discardCalls(current(), { ...batch, isDryRun: true });
    if (!isDryRun && meant.done !== count)
      return sendRefusal(request, reply, 'count_differs', { context: { meant: meant.done } });
    const report = isDryRun ? meant : await discardCalls(current(), { ...batch, isDryRun: false });
    const answer: DiscardReportJson = { discarded: report.done, ...skipsOf(report) };
    return reply.send(answer);
  });
}

/** The body says which dead letters are meant: a filter in the address would be passed over, and more of them changed. */
function hasQuery({ url }: FastifyRequest): boolean {
  return url.includes('?');
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

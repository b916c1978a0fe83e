import type { FastifyInstance } from 'fastify';
import type { JobsContext } from '../use-cases/context.ts';
import { failureCause } from '../../base/values/failure-cause.ts';
import { discardCall } from '../../calls/use-cases/discard-call.ts';
import { isRunnerPaused, pauseRunner, resumeRunner } from '../../calls/use-cases/pause-runner.ts';
import { requeueCall } from '../../calls/use-cases/requeue-call.ts';
import { listDeadCalls } from '../../calls/store/calls.ts';
import { sendInvalid, sendRefusal } from '../../ledger/http/errors.ts';
import { authorizeOperator, operatorsOf } from '../../accounts/http/operator-access.ts';
import { idOf } from '../../base/http/request-values.ts';
import { type DeadLetter, deadLettersQuery, discardRequest } from './schemas/operator.ts';
import { deadLetterBatchRoutes } from './dead-letter-batches.ts';

/** The operator's routes: each requires a token with the scope it names. */
export function operatorRoutes(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    const operators = operatorsOf(current());
    app.get('/operator/dead-letters', async (request, reply) => {
      const context = current();
      const access = await authorizeOperator(context, request, 'calls:read');
      if (access.kind === 'refused') return sendRefusal(request, reply, access.code);
      const query = deadLettersQuery.safeParse(request.query);
      if (!query.success) return sendRefusal(request, reply, 'invalid_request');
      const calls = await listDeadCalls(context.db, query.data.limit, query.data.after);
      return reply.header('cache-control', 'no-store').send({ calls: calls.map(deadLetterJson) });
    });

    app.post<{ Params: { call_id: string } }>(
      '/operator/dead-letters/:call_id/requeue',
      { onRequest: operators.require('calls:write') },
      async (request, reply) => {
        const context = current();
        const callId = idOf(request.params.call_id);
        const { kind } = await requeueCall(context, callId, {
          token_id: operators.of(request).tokenId,
        });
        if (kind === 'refunded') return sendRefusal(request, reply, 'call_refunded');
        if (kind === 'refund_under_way') return sendRefusal(request, reply, 'refund_under_way');
        if (kind === 'unpaid') return sendRefusal(request, reply, 'call_unpaid');
        if (kind === 'not_dead') return sendRefusal(request, reply, 'call_not_found');
        context.onCallReleased();
        return reply.send({ call_id: callId, status: 'enqueued' });
      },
    );

    const guard = { onRequest: operators.require('calls:write') };
    await app.register(deadLetterBatchRoutes(current));
    app.post<{ Params: { call_id: string } }>(
      '/operator/dead-letters/:call_id/discard',
      guard,
      async (request, reply) => {
        const body = discardRequest.safeParse(request.body);
        if (!body.success) return sendInvalid(request, reply, body.error);
        const callId = idOf(request.params.call_id);
        const { name: operator, tokenId: token_id } = operators.of(request);
        const { kind } = await discardCall(current(), callId, { ...body.data, operator, token_id });
        if (kind === 'not_found') return sendRefusal(request, reply, 'call_not_found');
        if (kind === 'with_runner') return sendRefusal(request, reply, 'call_leased');
        return reply.send({ call_id: callId, status: 'discarded' });
      },
    );

    for (const [verb, change] of [
      ['pause', pauseRunner],
      ['resume', resumeRunner],
    ] as const) {
      app.post<{ Params: { runner: string } }>(
        `/operator/runners/:runner/${verb}`,
        guard,
        async (request, reply) => {
          const context = current();
          const runner = context.config.runners.find(({ name }) => name === request.params.runner);
          if (!runner) return sendRefusal(request, reply, 'runner_not_found');
          const { name: operator, tokenId: token_id } = operators.of(request);
          await change(context, runner, { operator, token_id });
          context.onCallReleased();
          return reply.send({ runner: runner.name, paused: await isRunnerPaused(context, runner) });
        },
      );
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

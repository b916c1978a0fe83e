import type { FastifyInstance } from 'fastify';
import type { JobsContext } from '../../jobs/context.ts';
import { requeueCall } from '../../jobs/requeue-call.ts';
import { listDeadCalls } from '../../store/calls.ts';
import { sendRefusal } from '../server/errors.ts';
import { authorizeOperator, operatorsOf } from '../identity/operator-access.ts';
import { idOf } from '../server/request-values.ts';
import { type DeadLetter, deadLettersQuery } from '../schemas/operator.ts';

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
        const { kind } = await requeueCall(context, callId, operators.of(request).tokenId);
        if (kind === 'refunded') return sendRefusal(request, reply, 'call_refunded');
        if (kind === 'unpaid') return sendRefusal(request, reply, 'call_unpaid');
        if (kind === 'not_dead') return sendRefusal(request, reply, 'call_not_found');
        context.onCallReleased();
        return reply.send({ call_id: callId, status: 'enqueued' });
      },
    );
  };
}

function deadLetterJson(call: Awaited<ReturnType<typeof listDeadCalls>>[number]): DeadLetter {
  return {
    call_id: call.call_id,
    quote_digest: call.stream,
    service_id: call.service_id,
    job_index: call.job_index,
    attempts: call.attempt,
    reason: call.last_reason,
    runner: call.last_runner,
    last_error: call.last_error,
    dead_since: call.due_at.toISOString(),
    created_at: call.created_at.toISOString(),
  };
}

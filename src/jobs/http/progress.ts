import type { FastifyInstance } from 'fastify';
import { flattenError } from 'zod';
import type { JobsContext } from '../use-cases/context.ts';
import { createProgressDesk, runnerOfLease } from '../../calls/use-cases/progress.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { bearerToken, idOf } from '../../base/http/request-values.ts';
import { progressBody } from './schemas/runner.ts';
import { runnerFinder } from './runner-auth.ts';

const bodyLimit = 4_096;

/**
 * POST /runner/calls/{call_id}/progress: what a runner says of a call while it works on it, for the client that waits. One that leases its
 * calls has its token; any other has a token of the call's lease alone.
 */
export function progressRoute(current: () => JobsContext) {
  return async (app: FastifyInstance): Promise<void> => {
    const runnerOf = runnerFinder(current);
    const desk = createProgressDesk();
    app.post<{ Params: { call_id: string } }>(
      '/runner/calls/:call_id/progress',
      { bodyLimit },
      async (request, reply) => {
        const ofLeases = runnerOf(request);
        const body = progressBody.safeParse(request.body);
        if (!body.success)
          return sendRefusal(request, reply, 'invalid_request', {
            context: { details: flattenError(body.error) },
          });
        const { lease_id: leaseId, fraction, message } = body.data;
        const lease = { callId: idOf(request.params.call_id), leaseId };
        const runner = ofLeases ?? runnerOfLease(current().config, lease, bearerToken(request) ?? '');
        if (!runner) return sendRefusal(request, reply, 'unauthorized');
        const { kind } = await desk.report(current(), runner, lease, { fraction, message });
        return kind === 'lease_lost' ? sendRefusal(request, reply, kind) : reply.send({ status: kind });
      },
    );
  };
}

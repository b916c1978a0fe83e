import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { partsOf, resultPartBytes } from '../../base/values/result-parts.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { putPart } from '../../calls/use-cases/large-result.ts';
import { findRunnerLease } from '../../calls/use-cases/lease-calls.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import type { RequestBodies } from '../../base/http/request-bodies.ts';
import { idOf } from '../../base/http/request-values.ts';
import { requireRunner } from './runner-auth.ts';

const leaseId = z.uuid();
const partNumber = z.coerce.number().int().min(0).max(1_000_000);

/** A result's bytes are copied once, into the part that is stored. */
const workFactor = 1;

/**
 * POST /runner/calls/{call_id}/result-parts/{part}: one part of a result that is too large for `/complete`, as bytes, under the lease that
 * the header `X-Net-Lease-Id` names. Nothing of it counts until `/complete` names the whole.
 */
export function resultPartRoute(current: () => JobsContext, bodies: RequestBodies) {
  return async (app: FastifyInstance): Promise<void> => {
    const runnerOf = requireRunner(app, current);
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (request: FastifyRequest, payload: IncomingMessage) =>
      bodies.read(request, payload, { maxBytes: resultPartBytes, workFactor }),
    );
    app.post<{ Params: { call_id: string; part: string } }>(
      '/runner/calls/:call_id/result-parts/:part',
      { bodyLimit: resultPartBytes },
      async (request, reply) => {
        const context = current();
        const { results, config } = context;
        const lease = leaseId.safeParse(request.headers['x-net-lease-id']);
        const part = partNumber.safeParse(request.params.part);
        if (!lease.success || !part.success || !Buffer.isBuffer(request.body))
          return sendRefusal(request, reply, 'invalid_request');
        const maxBytes = config.resultStore?.maxBytes ?? 0;
        if (!results || part.data >= partsOf(maxBytes))
          return sendRefusal(request, reply, 'result_too_large');
        const name = { callId: idOf(request.params.call_id), leaseId: lease.data };
        if (!(await findRunnerLease(context, runnerOf(request), name)))
          return sendRefusal(request, reply, 'lease_lost');
        const kept = await putPart({ ...context, results }, name, part.data, request.body);
        if (kept.kind === 'unavailable') return sendRefusal(request, reply, 'result_store_unavailable');
        return reply.send({ status: 'stored' });
      },
    );
    app.addHook('onSend', (request, _reply, _payload, done) => {
      bodies.release(request);
      done();
    });
  };
}

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { ZodType } from 'zod';
import type { Config, RunnerConfig } from '../../base/config/config.ts';
import { lastWords } from '../../base/values/last-words.ts';
import { callMetadata, maxResultBytesOf, spelledOut } from '../../calls/use-cases/deliver-call.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { jobTurns } from '../../calls/use-cases/call-order.ts';
import {
  completeStored,
  extendRunnerLease,
  finishLease,
  leaseForRunner,
} from '../../calls/use-cases/lease-calls.ts';
import type { AttemptOutcome, LeaseResult } from '../../calls/use-cases/record-attempt.ts';
import { boundedWaitMs } from '../../base/peers/http/retry-after.ts';
import type { LeasedCall, LeaseName } from '../../calls/store/calls.ts';
import { sendRefusal, sendInvalid } from '../../ledger/http/errors.ts';
import { leftSignal } from '../../base/http/left-signal.ts';
import { idOf, bearerToken } from '../../base/http/request-values.ts';
import { requireRunner, runnerFinder } from './runner-auth.ts';
import {
  completeBody,
  extendBody,
  failBody,
  leaseBody,
  type CompleteBody,
  type LeasedCallJson,
  progressBody,
} from './schemas/runner.ts';
import { createProgressDesk, runnerOfLease } from '../../calls/use-cases/progress.ts';

/** The lease API for runners that poll. Every route requires the bearer token of a runner with `mode = "lease"`. */
export function leaseRoutes(current: () => JobsContext) {
  const context = current();
  return async (app: FastifyInstance): Promise<void> => {
    const runnerOf = requireRunner(app, current);
    const route = <T>(path: string, schema: ZodType<T>, handle: RunnerHandler<T>): void => {
      // a result travels in base64 inside JSON
      const bodyLimit = Math.ceil((context.config.delivery.maxResultBytes * 4) / 3) + 65_536;
      app.post<{ Params: { call_id?: string } }>(path, { bodyLimit }, async (request, reply) => {
        const runner = runnerOf(request);
        const body = schema.safeParse(request.body);
        if (!body.success) return sendInvalid(request, reply, body.error);
        return handle({ runner, body: body.data, request, reply, callId: idOf(request.params.call_id) });
      });
    };

    route('/runner/leases', leaseBody, async ({ runner, body, request, reply }) => {
      const services = body.services ?? runner.services;
      if (services.some((service) => !runner.services.includes(service)))
        return sendRefusal(request, reply, 'forbidden');
      const calls = await leaseForRunner(
        current(),
        {
          max: body.max,
          leaseSecs: body.lease_secs,
          waitSecs: body.wait_secs,
          services,
          runner: runner.name,
          turns: () => jobTurns(current().settings),
        },
        leftSignal(reply),
      );
      return reply.send({ calls: calls.map((call) => leasedCallJson(context.config, call)) });
    });

    route('/runner/calls/:call_id/extend', extendBody, async ({ runner, body, request, reply, callId }) => {
      const lease = { callId, leaseId: body.lease_id };
      const extended = await extendRunnerLease(context, runner, lease, body.lease_secs);
      if (extended.kind === 'lease_lost') return sendRefusal(request, reply, 'lease_lost');
      return reply.send({ lease_expires_at: extended.endsAt.toISOString() });
    });

    route(
      '/runner/calls/:call_id/complete',
      completeBody,
      async ({ runner, body, request, reply, callId }) => {
        const lease = { callId, leaseId: body.lease_id };
        const done = body.stored_result
          ? await completeStored(current(), runner, lease, body.stored_result, {
              contentType: body.stored_result.content_type,
              price: body.price,
            })
          : await completeInline(current(), runner, lease, body);
        if (done.kind === 'recorded') return reply.send({ status: 'completed' });
        return sendRefusal(request, reply, done.kind);
      },
    );

    route('/runner/calls/:call_id/fail', failBody, async ({ runner, body, request, reply, callId }) => {
      const error = lastWords(body.error, runner.tokens);
      const said = { reason: 'runner_failed', error };
      const outcome: AttemptOutcome = body.retry
        ? { kind: 'retry', retryAfterMs: boundedWaitMs((body.retry_after_secs ?? 0) * 1_000), ...said }
        : { kind: 'dead', ...said };
      const done = await finishLease(current(), runner, { callId, leaseId: body.lease_id }, outcome);
      return done.kind === 'recorded'
        ? reply.send({ status: 'failed' })
        : sendRefusal(request, reply, 'lease_lost');
    });
  };
}

async function completeInline(
  context: JobsContext,
  runner: RunnerConfig,
  lease: LeaseName,
  { result: given, price }: CompleteBody,
): Promise<LeaseResult | { readonly kind: 'result_too_large' }> {
  const result = Buffer.from(given?.body_base64 ?? '', 'base64');
  if (result.length > context.config.delivery.maxResultBytes) return { kind: 'result_too_large' };
  const contentType = given?.content_type;
  return finishLease(context, runner, lease, {
    kind: 'completed',
    contentType,
    result,
    resultOmitted: false,
    price,
  });
}

type RunnerHandler<T> = (call: {
  readonly runner: RunnerConfig;
  readonly body: T;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly callId: number;
}) => Promise<FastifyReply>;

function leasedCallJson(config: Config, call: LeasedCall): LeasedCallJson {
  return {
    call_id: call.callId,
    lease_id: call.leaseId,
    attempt: call.attempt,
    service_id: call.serviceId,
    job_index: call.jobIndex,
    metadata: spelledOut(callMetadata(call, maxResultBytesOf(config))),
    content_type: call.contentType ?? null,
    body_base64: (call.body ?? Buffer.alloc(0)).toString('base64'),
    lease_expires_at: call.leaseUntil.toISOString(),
    ...(call.traceparent === undefined ? {} : { traceparent: call.traceparent }),
  };
}

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
      { bodyLimit: 4_096 },
      async (request, reply) => {
        const ofLeases = runnerOf(request);
        const body = progressBody.safeParse(request.body);
        if (!body.success) return sendInvalid(request, reply, body.error);
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

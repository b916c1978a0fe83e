import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { flattenError, type ZodType } from 'zod';
import type { Config, RunnerConfig } from '../../config/config.ts';
import { lastWords } from '../../domain/values/last-words.ts';
import { callMetadata } from '../../jobs/deliver-call.ts';
import type { JobsContext } from '../../jobs/context.ts';
import { extendRunnerLease, finishLease, leaseForRunner } from '../../jobs/lease-calls.ts';
import { logSecondSecret } from '../../runtime/second-secret.ts';
import type { LeasedCall } from '../../store/calls.ts';
import { sendRefusal } from '../server/errors.ts';
import { bearerToken, idOf, tokenHash } from '../server/request-values.ts';
import { completeBody, extendBody, failBody, leaseBody, type LeasedCallJson } from '../schemas/runner.ts';

interface TokenHash {
  readonly runner: RunnerConfig;
  readonly hash: Buffer;
  readonly isSecond: boolean;
}

function tokenHashes({ runners }: Config): TokenHash[] {
  const leasing = runners.filter(({ mode }) => mode === 'lease');
  return leasing.flatMap((runner) =>
    runner.tokens.map((token, index) => ({ runner, hash: tokenHash(token), isSecond: index > 0 })),
  );
}

/** The lease API for runners that poll. Every route requires the bearer token of a runner with `mode = "lease"`. */
export function leaseRoutes(current: () => JobsContext) {
  const context = current();
  /** By the runners in force, which a reload replaces with their tokens. */
  const hashesOf = new WeakMap<Config, readonly TokenHash[]>();

  /** The runner whose token this is. Compared by hash, in constant time. */
  const authenticate = (request: FastifyRequest): RunnerConfig | undefined => {
    const { config, log } = current();
    const hashes = hashesOf.get(config) ?? tokenHashes(config);
    hashesOf.set(config, hashes);
    const given = tokenHash(bearerToken(request) ?? '');
    const found = hashes.find(({ hash }) => timingSafeEqual(hash, given));
    if (found?.isSecond) logSecondSecret(log, `runners.${found.runner.name}.second_token`);
    return found?.runner;
  };

  const runnerOf = new WeakMap<FastifyRequest, RunnerConfig>();

  return async (app: FastifyInstance): Promise<void> => {
    // before a body is read, which may be large
    app.addHook('onRequest', async (request, reply) => {
      const runner = authenticate(request);
      if (!runner) return sendRefusal(request, reply, 'unauthorized');
      runnerOf.set(request, runner);
    });
    const route = <T>(path: string, schema: ZodType<T>, handle: RunnerHandler<T>): void => {
      // a result travels in base64 inside JSON
      const bodyLimit = Math.ceil((context.config.delivery.maxResultBytes * 4) / 3) + 65_536;
      app.post<{ Params: { call_id?: string } }>(path, { bodyLimit }, async (request, reply) => {
        const runner = runnerOf.get(request);
        if (!runner) throw new Error('a route of the lease API was not authenticated');
        const body = schema.safeParse(request.body);
        if (!body.success) {
          const facts = { details: flattenError(body.error) };
          return sendRefusal(request, reply, 'invalid_request', { context: facts });
        }
        return handle({ runner, body: body.data, request, reply, callId: idOf(request.params.call_id) });
      });
    };

    route('/runner/leases', leaseBody, async ({ runner, body, request, reply }) => {
      const services = body.services ?? runner.services;
      if (services.some((service) => !runner.services.includes(service)))
        return sendRefusal(request, reply, 'forbidden');
      const disconnected = new AbortController();
      reply.raw.once('close', () => disconnected.abort());
      const calls = await leaseForRunner(
        context,
        {
          max: body.max,
          leaseSecs: body.lease_secs,
          waitSecs: body.wait_secs,
          services,
          runner: runner.name,
        },
        disconnected.signal,
      );
      return reply.send({ calls: calls.map(leasedCallJson) });
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
        const result = Buffer.from(body.result?.body_base64 ?? '', 'base64');
        if (result.length > context.config.delivery.maxResultBytes)
          return sendRefusal(request, reply, 'result_too_large');
        const contentType = body.result?.content_type;
        const outcome = { kind: 'completed', contentType, result, resultOmitted: false } as const;
        const done = await finishLease(context, runner, { callId, leaseId: body.lease_id }, outcome);
        return done.kind === 'recorded'
          ? reply.send({ status: 'completed' })
          : sendRefusal(request, reply, 'lease_lost');
      },
    );

    route('/runner/calls/:call_id/fail', failBody, async ({ runner, body, request, reply, callId }) => {
      const error = lastWords(body.error, runner.tokens);
      const outcome = { kind: body.retry ? 'retry' : 'dead', reason: 'runner_failed', error } as const;
      const done = await finishLease(context, runner, { callId, leaseId: body.lease_id }, outcome);
      return done.kind === 'recorded'
        ? reply.send({ status: 'failed' })
        : sendRefusal(request, reply, 'lease_lost');
    });
  };
}

type RunnerHandler<T> = (call: {
  readonly runner: RunnerConfig;
  readonly body: T;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly callId: number;
}) => Promise<FastifyReply>;

function leasedCallJson(call: LeasedCall): LeasedCallJson {
  return {
    call_id: call.callId,
    lease_id: call.leaseId,
    attempt: call.attempt,
    service_id: call.serviceId,
    job_index: call.jobIndex,
    metadata: callMetadata(call),
    content_type: call.contentType ?? null,
    body_base64: (call.body ?? Buffer.alloc(0)).toString('base64'),
    lease_expires_at: call.leaseUntil.toISOString(),
    ...(call.traceparent === undefined ? {} : { traceparent: call.traceparent }),
  };
}

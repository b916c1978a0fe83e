import { timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Config, RunnerConfig } from '../../base/config/config.ts';
import type { JobsContext } from '../use-cases/context.ts';
import { logSecondSecret } from '../../base/runtime/second-secret.ts';
import { sendRefusal } from '../../ledger/http/errors.ts';
import { bearerToken, tokenHash } from '../../base/http/request-values.ts';

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

/** Finds the runner whose token a request bears, of those that lease their calls. Compared by hash, in constant time. */
export function runnerFinder(
  current: () => JobsContext,
): (request: FastifyRequest) => RunnerConfig | undefined {
  /** By the runners in force, which a reload replaces with their tokens. */
  const hashesOf = new WeakMap<Config, readonly TokenHash[]>();
  return (request) => {
    const { config, log } = current();
    const hashes = hashesOf.get(config) ?? tokenHashes(config);
    hashesOf.set(config, hashes);
    const given = tokenHash(bearerToken(request) ?? '');
    const found = hashes.find(({ hash }) => timingSafeEqual(hash, given));
    if (found?.isSecond) logSecondSecret(log, `runners.${found.runner.name}.token`);
    return found?.runner;
  };
}

/** Lets only runners use the routes of `app`; before a body is read, which may be large. Returns whose request it is. */
export function requireRunner(
  app: FastifyInstance,
  current: () => JobsContext,
): (request: FastifyRequest) => RunnerConfig {
  const authenticate = runnerFinder(current);
  const runnerOf = new WeakMap<FastifyRequest, RunnerConfig>();
  app.addHook('onRequest', async (request, reply) => {
    const runner = authenticate(request);
    if (!runner) return sendRefusal(request, reply, 'unauthorized');
    runnerOf.set(request, runner);
  });
  return (request) => {
    const runner = runnerOf.get(request);
    if (!runner) throw new Error('a route of the lease API was not authenticated');
    return runner;
  };
}
